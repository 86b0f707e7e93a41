"""
wrong: waits for its own fence, not for the copies'
check: ensure, gate
phrase: The wrong queue waits
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    if ring.step:
        ring.device.direct_queue.wait(ring.consumed, ring.step)
    return ring.hand_over(slot, layer)
