"""
wrong: is one step ahead
check: layer_of, gate
phrase: One step early
rule: layer_of.from_0
"""


def layer_of(step, layers):
    return (step + 1) % layers
