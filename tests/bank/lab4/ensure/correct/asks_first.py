"""
note: tells the tracker only where it says something else
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        if buffer.tracked_state != "COMMON":
            buffer.assume_common()
    return slot.holding(layer)
