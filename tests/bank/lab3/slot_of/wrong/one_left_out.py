"""
wrong: never uses the last slot
check: slot_of, gate
phrase: One slot is left out
rule: slot_of.in_turn
"""


def slot_of(step, layers, pool):
    return step % (pool - 1)
