"""
wrong: gives up the highest number
check: victim
phrase: The highest number
"""


def victim(held, layer, layers):
    return max(held)
