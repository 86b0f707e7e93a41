"""
wrong: waits for a copy that nobody has submitted
check: ensure, gate
phrase: Wait before signal
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready + len(ring.slots))
    return ring.hand_over(slot, layer)
