"""
wrong: the farthest, whichever way
check: victim
rule: victim.one_way
phrase: The farthest number, around the end either way
"""


def victim(held, layer, layers):
    return max(held, key=lambda other: min((other - layer) % layers, (layer - other) % layers))
