"""
wrong: prints in place of returning
check: layer_of, gate
phrase: It returned nothing
"""


def layer_of(step, layers):
    return print(step % layers)
