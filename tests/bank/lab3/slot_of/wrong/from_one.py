"""
wrong: counts slots from 1
check: slot_of, gate
phrase: Counted from 1
rule: slot_of.from_0
"""


def slot_of(step, layers, pool):
    return step % pool + 1
