"""
wrong: a pool of 1: only the first slot is filled
check: prefetch, prefetch_ahead, gate
phrase: Only one slot is used
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slots[0])
        ring.uploaded += 1
