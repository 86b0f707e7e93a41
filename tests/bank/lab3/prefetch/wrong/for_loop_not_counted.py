"""
wrong: a for loop that does not count
check: prefetch, prefetch_ahead, gate
phrase: ring.uploaded does not go on
"""


def prefetch(ring):
    for step in range(ring.uploaded, min(ring.step + len(ring.slots), ring.end)):
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
