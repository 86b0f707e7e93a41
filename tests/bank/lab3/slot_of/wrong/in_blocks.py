"""
wrong: neighbouring steps share a slot
check: slot_of, gate
phrase: Blocks, not turns
rule: slot_of.in_turn
"""


def slot_of(step, layers, pool):
    return step // pool % pool
