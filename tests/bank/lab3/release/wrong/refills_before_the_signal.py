"""
wrong: waits before the signal
check: release, gate
phrase: Nothing is signalled before the refill
rule: release.after_the_signal
"""


def release(ring, layer):
    ring.step += 1
    ring.prefetch()
    ring.device.direct_queue.signal(ring.consumed, ring.step)
