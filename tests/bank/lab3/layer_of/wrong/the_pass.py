"""
wrong: gives the number of the pass
check: layer_of, gate
phrase: The pass, not the layer
rule: layer_of.again
"""


def layer_of(step, layers):
    return step // layers
