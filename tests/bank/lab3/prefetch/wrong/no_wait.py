"""
wrong: uploads without asking who reads
check: prefetch, prefetch_ahead, gate
phrase: Nobody waits for the reader
rule: prefetch.waits_first
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
