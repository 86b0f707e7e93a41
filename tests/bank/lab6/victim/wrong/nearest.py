"""
wrong: the nearest, whichever way
check: victim
rule: victim.one_way
phrase: The nearest number, around the end either way
"""


def victim(held, layer, layers):
    return min(held, key=lambda other: min((other - layer) % layers, (layer - other) % layers))
