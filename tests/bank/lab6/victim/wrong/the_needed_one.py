"""
wrong: gives up the layer that is needed
check: victim
phrase: The layer that is needed now
"""


def victim(held, layer, layers):
    return layer
