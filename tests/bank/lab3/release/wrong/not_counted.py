"""
wrong: forgets to count the step
check: release, gate
phrase: ring.step does not go on
rule: release.goes_on
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.prefetch()
