"""
wrong: takes the step for the layer
check: prefetch, prefetch_ahead, gate
phrase: IndexError
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(step, ring.slot_of(step))
        ring.uploaded += 1
