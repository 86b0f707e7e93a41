"""
wrong: waits for the upload after its own where there is one
check: ensure_fence, gate
rule: ensure_fence.no_more
phrase: Waits for more than the slot
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    value = min(slot.ready + 1, ring.engine.copied.last_submitted)
    ring.device.direct_queue.wait(ring.engine.copied, value)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
