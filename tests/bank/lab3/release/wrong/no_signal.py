"""
wrong: does not say that the slot was read
check: release, gate
phrase: release signals nothing
"""


def release(ring, layer):
    ring.step += 1
    ring.prefetch()
