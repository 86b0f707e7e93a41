"""
wrong: gives up what came first in the list
check: victim
rule: victim.farthest
phrase: First in, first out
"""


def victim(held, layer, layers):
    return held[0]
