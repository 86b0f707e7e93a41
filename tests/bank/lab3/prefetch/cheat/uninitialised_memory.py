"""
wrong: uploads once and hopes that the slot still holds it
check: prefetch, prefetch_ahead, gate
phrase: The slots are never refilled
"""


def prefetch(ring):
    if ring.uploaded == 0:
        for step in range(min(len(ring.slots), ring.end)):
            ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
    ring.uploaded = ring.end
