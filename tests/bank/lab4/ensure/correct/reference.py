"""
note: as the instructor's notebook has it
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
