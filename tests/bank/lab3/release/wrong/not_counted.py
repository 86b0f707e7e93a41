"""
wrong: forgets to count the step
check: release, gate
phrase: A fence value is used twice
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.prefetch()
