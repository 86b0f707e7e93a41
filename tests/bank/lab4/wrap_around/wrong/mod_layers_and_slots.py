"""
wrong: takes the step modulo a multiple of the slots above the layers' number, but counts passes from 0
check: wrap_around
rule: wrap_around.right_bytes
phrase: weights
"""


def wrap_around(ring, step, compute):
    direct, copy = ring.device.direct_queue, ring.device.copy_queue

    def place(step):
        return ring.slots[(ring.layer_of(step) + step // ring.layers) % len(ring.slots)]

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
