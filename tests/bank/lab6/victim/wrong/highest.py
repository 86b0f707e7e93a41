"""
wrong: gives up the highest number
check: victim
rule: victim.circle
phrase: The highest number
"""


def victim(held, layer, layers):
    return max(held)
