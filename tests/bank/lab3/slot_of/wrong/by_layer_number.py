"""
wrong: slot by layer index across tokens
check: slot_of, gate
phrase: Slot by layer number
rule: slot_of.over_all_passes
"""


def slot_of(step, layers, pool):
    return step % layers % pool
