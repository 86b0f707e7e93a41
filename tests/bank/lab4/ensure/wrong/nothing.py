"""
wrong: does neither
check: ensure_fence, ensure_state, gate
rule: ensure_state.told
phrase: Nobody waits for the copy
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    return slot.holding(layer)
