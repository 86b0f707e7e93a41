"""
wrong: synchronises everything
check: ensure_fence, gate
rule: ensure_fence.host
phrase: Everything is synchronised
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.wait_idle()
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
