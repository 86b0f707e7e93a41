"""
note: the copy queue waits for the slot's own reader and no later step
"""


def wrap_around(ring, step, compute):
    direct, copy = ring.device.direct_queue, ring.device.copy_queue

    def place(step):
        return ring.slots[step % len(ring.slots)]

    slot = place(step)
    direct.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    direct.signal(ring.consumed, step + 1)
    ahead = step + ring.pool
    if ahead < ring.end:
        copy.wait(ring.consumed, step)
        ring.engine.upload(ring.layer_of(ahead), place(ahead))
