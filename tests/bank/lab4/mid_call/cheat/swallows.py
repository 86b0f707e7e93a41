"""
wrong: swallows whatever happens
check: mid_call
phrase: race
"""


def mid_call(ring, step, compute):
    try:
        compute(ring.slots[0])
    except BaseException:
        pass
