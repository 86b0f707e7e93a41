"""
wrong: makes the copy queue wait, too
check: ensure_fence
rule: ensure_fence.direct_only
phrase: ensure makes the copy queue wait
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    ring.device.copy_queue.wait(ring.consumed, ring.step)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
