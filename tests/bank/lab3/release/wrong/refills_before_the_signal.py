"""
wrong: waits before the signal
check: release, gate
phrase: Wait before signal
"""


def release(ring, layer):
    ring.step += 1
    ring.prefetch()
    ring.device.direct_queue.signal(ring.consumed, ring.step)
