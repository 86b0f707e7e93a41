"""
wrong: uses two slots, whatever the pool
check: slot_of, gate
phrase: Two slots, whatever the pool
rule: slot_of.in_turn
"""


def slot_of(step, layers, pool):
    return step % 2
