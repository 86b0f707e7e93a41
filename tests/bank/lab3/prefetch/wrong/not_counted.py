"""
wrong: forgets to count what was uploaded
check: prefetch, prefetch_ahead, gate
phrase: ring.uploaded does not go on
rule: prefetch.counts
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
