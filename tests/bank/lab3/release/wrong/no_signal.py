"""
wrong: does not say that the slot was read
check: release, gate
phrase: release signals nothing
rule: release.after_the_signal
"""


def release(ring, layer):
    ring.step += 1
    ring.prefetch()
