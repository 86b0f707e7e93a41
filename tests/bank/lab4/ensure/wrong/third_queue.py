"""
wrong: lets a queue of its own signal that the copy arrived
check: ensure_fence, ensure_state, gate
rule: ensure_fence.two_queues
phrase: queue is given something to do
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    middle = ring.device.queue("middle") if hasattr(ring.device, "queue") else ring.device.create_queue("middle")
    middle.wait(ring.engine.copied, slot.ready)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
