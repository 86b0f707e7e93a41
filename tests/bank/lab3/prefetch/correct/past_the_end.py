"""
note: goes on past the announced passes, by at most N
"""


def prefetch(ring):
    while ring.uploaded < ring.step + len(ring.slots):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded = step + 1
