"""
wrong: waits for the next step's copy as well
check: ensure, gate
phrase: Waits for more than the slot
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    latest = ring.engine.copied.last_submitted
    ring.device.direct_queue.wait(ring.engine.copied, min(slot.ready + 1, latest))
    return ring.hand_over(slot, layer)
