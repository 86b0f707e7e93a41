"""
wrong: forgets to hand over
check: ensure, gate
phrase: ensure has to return
rule: ensure.returns
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
