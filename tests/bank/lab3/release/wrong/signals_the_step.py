"""
wrong: step 0 signals 0
check: release, gate
phrase: Step 0 signals 0
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, ring.step)
    ring.step += 1
    ring.prefetch()
