"""
wrong: waits for everything that was uploaded
check: ensure, gate
phrase: Waits for more than the slot
rule: ensure.no_more
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, ring.engine.copied.last_submitted)
    return ring.hand_over(slot, layer)
