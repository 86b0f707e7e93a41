"""
wrong: a list that holds itself
check: layer_bytes
phrase: has the wrong form
"""


def layer_bytes(config):
    knot = []
    knot.append(knot)
    return knot
