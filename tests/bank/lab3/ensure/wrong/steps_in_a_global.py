"""
wrong: steps are counted in a global
check: ensure, gate
phrase: is computed with other weights
"""

steps = 0


def ensure(ring, layer):
    global steps
    slot = ring.slot_of(steps)
    steps += 1
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    return ring.hand_over(slot, layer)
