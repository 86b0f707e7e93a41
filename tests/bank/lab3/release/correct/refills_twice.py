"""
note: asks for the refill twice: the second finds nothing to do
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.step += 1
    ring.prefetch()
    ring.prefetch()
