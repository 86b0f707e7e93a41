"""
wrong: tells the tracker about the next slot
check: ensure_state, gate
rule: ensure_state.true_when_said
phrase: COMMON assumed for another slot
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    for buffer in ring.slot_of(ring.step + 1).buffers:
        buffer.assume_common()
    return slot.holding(layer)
