"""
wrong: assumes only the first of the two buffers
check: ensure_state, gate
rule: ensure_state.told
phrase: Only one of the two buffers
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    slot.buffers[0].assume_common()
    return slot.holding(layer)
