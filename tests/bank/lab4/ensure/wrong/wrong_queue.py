"""
wrong: lets the copy queue wait
check: ensure_fence, ensure_state, gate
rule: ensure_state.true_when_said
phrase: The wrong queue waits
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.copy_queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
