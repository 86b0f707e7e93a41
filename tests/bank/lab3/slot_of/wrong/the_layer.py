"""
wrong: takes the layer for the slot
check: slot_of, gate
phrase: The layer is taken for the slot
rule: slot_of.in_turn
"""


def slot_of(step, layers, pool):
    return step % layers
