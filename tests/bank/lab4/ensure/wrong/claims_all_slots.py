"""
wrong: tells the tracker about every slot
check: ensure_state, gate
rule: ensure_state.true_when_said
phrase: COMMON
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    for one in ring.slots:
        for buffer in one.buffers:
            buffer.assume_common()
    return slot.holding(layer)
