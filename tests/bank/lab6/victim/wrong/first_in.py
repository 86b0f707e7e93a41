"""
wrong: gives up what came first in the list
check: victim
phrase: First in, first out
"""


def victim(held, layer, layers):
    return held[0]
