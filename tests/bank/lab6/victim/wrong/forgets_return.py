"""
wrong: nothing is returned
check: victim
phrase: It returned nothing
"""


def victim(held, layer, layers):
    max(held, key=lambda other: (other - layer) % layers)
