"""
wrong: consumed is not signalled for the last steps, which nobody waits for
check: release, gate
phrase: never signalled
rule: release.signals
"""


def release(ring, layer):
    if ring.step + len(ring.slots) < ring.end:
        ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.step += 1
    ring.prefetch()
