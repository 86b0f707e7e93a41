"""
wrong: fills the slots and never refills them
check: prefetch, prefetch_ahead, gate
phrase: The slots are never refilled
"""


def prefetch(ring):
    for step in range(len(ring.slots)):
        if ring.step == 0:
            ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
