"""
wrong: slot by layer index across tokens
check: prefetch, prefetch_ahead, gate
phrase: Slot by layer number
rule: prefetch.layer_and_slot
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        layer = ring.layer_of(step)
        ring.wait_until_read(step)
        ring.engine.upload(layer, ring.slots[layer % len(ring.slots)])
        ring.uploaded += 1
