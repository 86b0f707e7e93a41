"""
wrong: uses two slots, whatever the pool
check: slot_of, gate
phrase: Two slots, whatever the pool
"""


def slot_of(step, layers, pool):
    return step % 2
