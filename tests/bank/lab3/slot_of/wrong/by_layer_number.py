"""
wrong: slot by layer index across tokens
check: slot_of, gate
phrase: Slot by layer number
"""


def slot_of(step, layers, pool):
    return step % layers % pool
