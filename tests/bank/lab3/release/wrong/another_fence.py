"""
wrong: a fence of its own is signalled in place of consumed
check: release, gate
phrase: Nothing is signalled before the refill
"""


def release(ring, layer):
    if not hasattr(ring, "own"):
        ring.own = ring.device.create_fence(ring.device.fresh_name("own"))
    ring.device.direct_queue.signal(ring.own, ring.step + 1)
    ring.step += 1
    ring.prefetch()
