"""
wrong: refills only at the end of a pass
check: release, gate
phrase: with other weights
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.step += 1
    if layer == ring.layers - 1:
        ring.prefetch()
