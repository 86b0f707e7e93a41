"""
wrong: uploads when the layer is needed
check: wrap_around
rule: wrap_around.ahead
phrase: Not far enough ahead
"""


def wrap_around(ring, step, compute):
    direct, copy = ring.device.direct_queue, ring.device.copy_queue
    slot = ring.slots[step % len(ring.slots)]
    if step >= ring.pool:
        copy.wait(ring.consumed, step - ring.pool + 1)
        ring.engine.upload(ring.layer_of(step), slot)
    direct.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    direct.signal(ring.consumed, step + 1)
