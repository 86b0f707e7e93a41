"""
note: over-synchronised: waits for all readers so far, none of which it has to pass
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.device.copy_queue.wait(ring.consumed, ring.consumed.last_submitted)
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
