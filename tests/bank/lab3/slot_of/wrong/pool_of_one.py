"""
wrong: a pool of 1
check: slot_of, gate
phrase: Only one slot
"""


def slot_of(step, layers, pool):
    return 0
