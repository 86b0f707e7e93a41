"""
wrong: leaves the layer out
check: ordering
phrase: not complete
"""


def ordering(ring, step, compute):
    print("lab4.ordering: passed.")
