"""
note: slow: takes one pass off after the other
"""


def layer_of(a, b):
    while a >= b:
        a -= b
    return a
