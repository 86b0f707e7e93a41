"""
wrong: goes round the other way, which works but is not what is asked for
check: slot_of
phrase: Backwards
rule: slot_of.in_turn
"""


def slot_of(step, layers, pool):
    return -step % pool
