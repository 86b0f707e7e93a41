"""
wrong: a pass is one layer too long
check: layer_of, gate
phrase: A pass is one layer too long
"""


def layer_of(step, layers):
    return step % (layers + 1)
