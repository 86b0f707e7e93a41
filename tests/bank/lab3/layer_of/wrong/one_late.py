"""
wrong: is one step behind
check: layer_of, gate
phrase: One step late
"""


def layer_of(step, layers):
    return (step - 1) % layers
