"""
wrong: waits for everything that was uploaded so far
check: ensure_fence, gate
rule: ensure_fence.no_more
phrase: Waits for more than the slot
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, ring.engine.copied.last_submitted)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
