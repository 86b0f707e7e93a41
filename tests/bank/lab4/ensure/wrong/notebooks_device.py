"""
wrong: uses the notebook's device
check: ensure_fence, ensure_state, gate
phrase: Another device
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    device.direct_queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
