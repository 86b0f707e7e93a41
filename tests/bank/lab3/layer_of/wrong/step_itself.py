"""
wrong: takes the step for the layer
check: layer_of, gate
phrase: The step is taken for the layer
rule: layer_of.again
"""


def layer_of(step, layers):
    return step
