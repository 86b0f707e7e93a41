"""
wrong: gives up the lowest number
check: victim
rule: victim.circle
phrase: The lowest number
"""


def victim(held, layer, layers):
    return min(held)
