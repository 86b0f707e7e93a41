"""
wrong: waits for the layer rather than the slot
check: ensure, gate
phrase: Waits for the layer, not for the slot
rule: ensure.arrived
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, layer + 1)
    return ring.hand_over(slot, layer)
