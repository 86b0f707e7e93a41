"""
wrong: tells the tracker in the first pass only
check: ensure_state, gate
rule: ensure_state.told
phrase: COMMON assumed for another slot
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    if ring.step < ring.layers:
        for buffer in slot.buffers:
            buffer.assume_common()
    return slot.holding(layer)
