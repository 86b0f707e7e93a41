"""
wrong: divides into a float
check: layer_of, gate
phrase: an int was asked for
"""


def layer_of(step, layers):
    return (step / layers - step // layers) * layers
