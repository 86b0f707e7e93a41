"""
wrong: assumes one buffer before the wait and one after
check: ensure_state, gate
rule: ensure_state.true_when_said
phrase: COMMON assumed before the wait
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    attention, mlp = slot.buffers
    attention.assume_common()
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    mlp.assume_common()
    return slot.holding(layer)
