"""
wrong: swallows whatever happens
check: ordering
phrase: race
"""


def ordering(ring, step, compute):
    try:
        compute(ring.slots[0])
    except BaseException:
        pass
