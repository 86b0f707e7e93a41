"""
note: waits for every upload up to its own, one by one
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    for value in range(max(1, slot.ready - 2), slot.ready + 1):
        ring.device.direct_queue.wait(ring.engine.copied, value)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
