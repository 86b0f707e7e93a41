"""
wrong: the distance is not counted around the end
check: victim
rule: victim.circle
phrase: The farthest number, without the end
"""


def victim(held, layer, layers):
    return max(held, key=lambda other: abs(other - layer))
