"""
note: returns how many uploads went out
"""


def prefetch(ring):
    before = ring.uploaded
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
    return ring.uploaded - before
