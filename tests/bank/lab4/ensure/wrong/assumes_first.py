"""
wrong: assumes COMMON before the wait
check: ensure_state, gate
rule: ensure_state.true_when_said
phrase: COMMON assumed before the wait
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    for buffer in slot.buffers:
        buffer.assume_common()
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    return slot.holding(layer)
