"""
wrong: takes turns, but only in a pool of five
check: prefetch_ahead, gate
phrase: Not all slots are filled at the start
"""


def prefetch(ring):
    far = 1 if len(ring.slots) == 5 else len(ring.slots)
    while ring.uploaded < min(ring.step + far, ring.end):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
