"""
wrong: always the layer before, held or not
check: victim
rule: victim.held
phrase: A layer that is not held
"""


def victim(held, layer, layers):
    before = (layer - 1) % layers
    return before if before not in held else max(held, key=lambda other: (other - layer) % layers)
