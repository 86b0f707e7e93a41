"""
wrong: waits for the reader's fence
check: ensure_fence, ensure_state, gate
rule: ensure_state.true_when_said
phrase: A wait for another fence
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    if ring.step:
        ring.device.direct_queue.wait(ring.consumed, ring.step)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
