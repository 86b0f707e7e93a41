"""
wrong: a pool of 1
check: slot_of, gate
phrase: Only one slot
rule: slot_of.in_turn
"""


def slot_of(step, layers, pool):
    return 0
