"""
wrong: swallows whatever happens
check: lifetime
phrase: race
"""


def lifetime(ring, step, compute):
    try:
        compute(ring.slots[0])
    except BaseException:
        pass
