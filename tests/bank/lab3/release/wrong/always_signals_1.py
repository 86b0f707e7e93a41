"""
wrong: one value for everything
check: release, gate
phrase: A fence value is used twice
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, 1)
    ring.step += 1
    ring.prefetch()
