"""
wrong: uploads on the direct queue: right bits, no overlap
check: prefetch, prefetch_ahead, gate
phrase: speaks of the copy queue's work
"""


def prefetch(ring):
    ring.engine.queue = ring.device.direct_queue
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
