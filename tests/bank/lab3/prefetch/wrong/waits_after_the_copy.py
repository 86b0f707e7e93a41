"""
wrong: waits when the copy has been submitted already
check: prefetch, prefetch_ahead, gate
phrase: write-after-read
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.wait_until_read(step)
        ring.uploaded += 1
