"""
wrong: one slot more than there is
check: slot_of, gate
phrase: One slot too many
rule: slot_of.in_turn
"""


def slot_of(step, layers, pool):
    return step % (pool + 1)
