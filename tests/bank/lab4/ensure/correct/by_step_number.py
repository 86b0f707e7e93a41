"""
note: upload number step + 1 is this step's; the two buffers by name
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, ring.step + 1)
    attention, mlp = slot.buffers
    attention.assume_common()
    mlp.assume_common()
    return slot.holding(layer)
