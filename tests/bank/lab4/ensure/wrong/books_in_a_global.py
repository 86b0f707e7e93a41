"""
wrong: counts steps in a global, which two models share
check: ensure_fence, ensure_state, gate
phrase: Two objects share their books
"""

counted = [0]


def ensure(ring, layer):
    counted[0] = 0 if ring.step == 0 else counted[0] + 1
    slot = ring.slot_of(counted[0])
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
