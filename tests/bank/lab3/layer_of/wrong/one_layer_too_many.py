"""
wrong: a pass is one layer too long
check: layer_of, gate
phrase: A pass is one layer too long
rule: layer_of.again
"""


def layer_of(step, layers):
    return step % (layers + 1)
