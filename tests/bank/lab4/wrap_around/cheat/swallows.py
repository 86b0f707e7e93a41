"""
wrong: swallows whatever happens
check: wrap_around
phrase: race
"""


def wrap_around(ring, step, compute):
    try:
        compute(ring.slots[0])
    except BaseException:
        pass
