"""
wrong: uploads go far beyond the last announced pass
check: prefetch, prefetch_ahead, gate
phrase: nobody was asked to signal
rule: prefetch.as_far
"""


def prefetch(ring):
    while ring.uploaded < ring.end + len(ring.slots):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
