"""
wrong: does not say that the slot was read
check: release, gate
phrase: Wait before signal
"""


def release(ring, layer):
    ring.step += 1
    ring.prefetch()
