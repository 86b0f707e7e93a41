"""
wrong: a list that holds itself
check: layer_bytes
phrase: is not of the form
"""

def layer_bytes(config):
    knot = []
    knot.append(knot)
    return knot
