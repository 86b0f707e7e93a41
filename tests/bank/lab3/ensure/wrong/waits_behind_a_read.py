"""
wrong: the host waits for each copy and reads a heap of its own
check: ensure, gate
phrase: The host waits in place of a queue
rule: ensure.host
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    ring.engine.copied.wait(slot.ready)
    own = ring.device.create_readback_heap(1, ring.device.fresh_name("own"))
    own.read("uint8", (1,))
    own.free()
    return ring.hand_over(slot, layer)
