"""
wrong: gives up what was used longest ago
check: victim
rule: victim.farthest
phrase: Least recently used
"""


def victim(held, layer, layers):
    return min(held, key=lambda other: (other - layer) % layers)
