"""
wrong: each step is uploaded twice
check: prefetch, prefetch_ahead, gate
phrase: Layers are uploaded that no step uses
rule: prefetch.each_once
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
