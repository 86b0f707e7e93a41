"""
wrong: gives up the last of the list
check: victim
rule: victim.farthest
phrase: Last in the list
"""


def victim(held, layer, layers):
    return held[-1]
