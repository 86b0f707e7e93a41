"""
wrong: begins with slot 1, which works but is not what is asked for
check: slot_of
phrase: The slot of the next step
"""


def slot_of(step, layers, pool):
    return (step + 1) % pool
