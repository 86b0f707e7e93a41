"""
note: a helper, other names
"""


def split(number, length):
    return divmod(number, length)


def layer_of(number, length):
    which_pass, layer = split(number, length)
    return layer
