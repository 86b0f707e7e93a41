"""
wrong: waits in the first pass only
check: ensure, gate
phrase: The wait is not for this slot's copy
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    if ring.step < ring.layers:
        ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    return ring.hand_over(slot, layer)
