"""
wrong: tells the tracker once for each slot and remembers that
check: ensure_state, gate
rule: ensure_state.told
phrase: COMMON assumed
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    told = ring.__dict__.setdefault("told", set())
    if slot.name not in told:
        told.add(slot.name)
        for buffer in slot.buffers:
            buffer.assume_common()
    return slot.holding(layer)
