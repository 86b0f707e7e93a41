"""
wrong: never uses the last slot
check: slot_of, gate
phrase: One slot is left out
"""


def slot_of(step, layers, pool):
    return step % (pool - 1)
