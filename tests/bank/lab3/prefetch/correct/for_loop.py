"""
note: a range in place of a while
"""


def prefetch(ring):
    last = min(ring.step + len(ring.slots), ring.end)
    for step in range(ring.uploaded, last):
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
    ring.uploaded = max(ring.uploaded, last)
