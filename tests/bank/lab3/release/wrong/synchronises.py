"""
wrong: synchronises everything: right bits, no overlap
check: release, gate
phrase: The host waits in place of a queue
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.device.wait_idle()
    ring.step += 1
    ring.prefetch()
