"""
note: counts passes and layers apart
"""


def wrap_around(ring, step, compute):
    direct, copy = ring.device.direct_queue, ring.device.copy_queue

    def place(step):
        number, layer = divmod(step, ring.layers)
        return ring.slots[(number * ring.layers + layer) % len(ring.slots)]

    slot = place(step)
    direct.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    direct.signal(ring.consumed, step + 1)
    ahead = step + ring.pool
    if ahead < ring.end:
        copy.wait(ring.consumed, step + 1)
        ring.engine.upload(ring.layer_of(ahead), place(ahead))
