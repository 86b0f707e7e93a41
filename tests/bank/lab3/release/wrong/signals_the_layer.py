"""
wrong: a fence value is used again in the next pass
check: release, gate
phrase: A fence value is used twice
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, layer + 1)
    ring.step += 1
    ring.prefetch()
