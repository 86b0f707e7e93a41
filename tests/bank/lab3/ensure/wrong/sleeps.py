"""
wrong: the host sleeps in every call
check: ensure, gate
phrase: The host sleeps
rule: ensure.host
"""

import time


def ensure(ring, layer):
    time.sleep(0.00001)
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    return ring.hand_over(slot, layer)
