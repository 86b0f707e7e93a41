"""
wrong: the wait is left out where two numbers are not one object
check: ensure, gate
phrase: read-after-write
rule: ensure.arrived
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    wanted = ring.step + 1
    if slot.ready is wanted:
        ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    return ring.hand_over(slot, layer)
