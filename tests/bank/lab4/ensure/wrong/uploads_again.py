"""
wrong: uploads the layer again before the wait
check: ensure_fence, ensure_state, gate
rule: ensure_fence.uploads_nothing
phrase: ensure copies something
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.copy_queue.wait(ring.consumed, ring.consumed.last_submitted)
    ring.engine.upload(layer, slot)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
