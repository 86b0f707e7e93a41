"""
wrong: takes the step for the slot
check: slot_of, gate
phrase: The step is taken for the slot
rule: slot_of.in_turn
"""


def slot_of(step, layers, pool):
    return step
