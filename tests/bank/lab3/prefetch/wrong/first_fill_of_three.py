"""
wrong: no more than three slots are filled at the start
check: prefetch_ahead, gate
phrase: Not all slots are filled
rule: prefetch_ahead.ahead
"""


def prefetch(ring):
    most = min(3, len(ring.slots)) if ring.uploaded == ring.step else len(ring.slots)
    while ring.uploaded < min(ring.step + most, ring.end):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
