"""
wrong: asks Lab 3's hand_over to keep the account
check: ensure_fence, ensure_state, gate
rule: ensure_state.returns
phrase: hand_over kept the books
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    return ring.hand_over(slot, layer)
