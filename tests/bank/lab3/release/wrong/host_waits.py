"""
wrong: the host waits until the layer is computed: right bits, no overlap
check: release, gate
phrase: The host waits in place of a queue
rule: release.host
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.consumed.wait(ring.step + 1)
    ring.step += 1
    ring.prefetch()
