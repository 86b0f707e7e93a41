"""
wrong: waits and never tells the tracker
check: ensure_state, gate
rule: ensure_state.told
phrase: The account is never brought up to date
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    return slot.holding(layer)
