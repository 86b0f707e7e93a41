"""
wrong: assumes without any wait
check: ensure_fence, ensure_state, gate
rule: ensure_state.true_when_said
phrase: COMMON assumed without any wait
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
