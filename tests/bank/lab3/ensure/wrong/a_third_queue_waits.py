"""
wrong: a third queue waits for every copy
check: ensure, gate
phrase: queue is given something to do
rule: ensure.two_queues
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    ring.device.write_back_queue.wait(ring.engine.copied, slot.ready)
    return ring.hand_over(slot, layer)
