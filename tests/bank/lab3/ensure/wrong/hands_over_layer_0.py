"""
wrong: hands over the same layer each time
check: ensure, gate
phrase: was asked for layer 1, but hands over layer 0
rule: ensure.returns
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    return ring.hand_over(slot, 0)
