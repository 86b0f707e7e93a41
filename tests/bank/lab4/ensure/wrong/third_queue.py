"""
wrong: lets a third queue wait for the copy, too
check: ensure_fence, ensure_state, gate
rule: ensure_fence.two_queues
phrase: queue is given something to do
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    middle = ring.device.write_back_queue
    middle.wait(ring.engine.copied, slot.ready)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
