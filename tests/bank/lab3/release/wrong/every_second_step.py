"""
wrong: consumed is signalled for every second step alone, as far as nobody notices
check: release, gate
phrase: is never signalled
"""


def release(ring, layer):
    if ring.step % 2 or ring.step + len(ring.slots) < ring.end:
        ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.step += 1
    ring.prefetch()
