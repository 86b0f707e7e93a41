"""
wrong: is one step ahead
check: layer_of, gate
phrase: One step early
"""


def layer_of(step, layers):
    return (step + 1) % layers
