"""
wrong: direct queue waits for the refill: copying and computing take turns
check: release, gate
phrase: Waits for more than the slot
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.step += 1
    ring.prefetch()
    ring.device.direct_queue.wait(ring.engine.copied, ring.engine.copied.last_submitted)
