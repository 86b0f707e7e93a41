"""
wrong: leaves the layer out
check: mid_call
phrase: not complete
"""


def mid_call(ring, step, compute):
    print("lab4.mid_call: passed.")
