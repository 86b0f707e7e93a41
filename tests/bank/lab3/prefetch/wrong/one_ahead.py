"""
wrong: uploads one step ahead, whatever the pool
check: prefetch_ahead, gate
phrase: Not far enough ahead
rule: prefetch_ahead.ahead
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + 1, ring.end):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
