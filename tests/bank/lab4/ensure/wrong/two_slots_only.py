"""
wrong: takes every pool for one of at most three
check: ensure_fence, ensure_state, gate
phrase: wait
"""


def ensure(ring, layer):
    slot = ring.slots[ring.step % min(3, len(ring.slots))]
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
