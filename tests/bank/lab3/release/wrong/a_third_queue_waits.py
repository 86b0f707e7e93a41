"""
wrong: a third queue waits for every step
check: release, gate
phrase: queue is given something to do
rule: release.two_queues
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.device.write_back_queue.wait(ring.consumed, ring.step + 1)
    ring.step += 1
    ring.prefetch()
