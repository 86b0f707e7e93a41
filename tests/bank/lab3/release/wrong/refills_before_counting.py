"""
wrong: refills one step late
check: release, gate
phrase: Not far enough ahead
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.prefetch()
    ring.step += 1
