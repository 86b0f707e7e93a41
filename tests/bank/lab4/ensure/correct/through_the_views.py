"""
note: the buffers of what it returns, and told twice
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    weights = slot.holding(layer)
    for buffer in reversed(weights.buffers):
        buffer.assume_common()
        buffer.assume_common()
    return weights
