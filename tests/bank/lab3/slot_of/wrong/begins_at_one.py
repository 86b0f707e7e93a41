"""
wrong: begins with slot 1, which works but is not what is asked for
check: slot_of
phrase: The slot of the next step
rule: slot_of.from_0
"""


def slot_of(step, layers, pool):
    return (step + 1) % pool
