"""
wrong: gives up the layer that is needed
check: victim
rule: victim.held
phrase: The layer that is needed now
"""


def victim(held, layer, layers):
    return layer
