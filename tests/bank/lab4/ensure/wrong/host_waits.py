"""
wrong: lets the host wait in place of the direct queue
check: ensure_fence, gate
rule: ensure_fence.host
phrase: The host waits in place of a queue
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.engine.copied.wait(slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
