"""
wrong: is one step behind
check: layer_of, gate
phrase: One step late
rule: layer_of.from_0
"""


def layer_of(step, layers):
    return (step - 1) % layers
