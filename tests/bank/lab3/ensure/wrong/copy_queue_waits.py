"""
wrong: waits on the wrong queue
check: ensure, gate
phrase: The wrong queue waits
rule: ensure.direct_queue
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.copy_queue.wait(ring.engine.copied, slot.ready)
    return ring.hand_over(slot, layer)
