"""
wrong: does not begin again
check: layer_of, gate
phrase: The last layer stays
rule: layer_of.again
"""


def layer_of(step, layers):
    return min(step, layers - 1)
