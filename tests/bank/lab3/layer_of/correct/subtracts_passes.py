"""
note: multiplies and subtracts
"""


def layer_of(step, layers):
    passes = step // layers
    return step - passes * layers
