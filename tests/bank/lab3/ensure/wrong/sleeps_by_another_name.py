"""
wrong: the host sleeps in every call, by a name of its own
check: ensure, gate
phrase: The host sleeps
rule: ensure.host
"""

from time import sleep as rest


def ensure(ring, layer):
    rest(0.00001)
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    return ring.hand_over(slot, layer)
