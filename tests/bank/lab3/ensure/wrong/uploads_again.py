"""
wrong: uploads when it is asked, a second time
check: ensure, gate
phrase: Uploaded a second time
rule: ensure.uploads_nothing
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ready = ring.engine.upload(layer, slot)
    ring.device.direct_queue.wait(ring.engine.copied, ready)
    return ring.hand_over(slot, layer)
