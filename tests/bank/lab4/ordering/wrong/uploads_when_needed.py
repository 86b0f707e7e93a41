"""
wrong: serial: each layer is uploaded right before it is computed
check: ordering
rule: ordering.ahead
phrase: Not far enough ahead
"""


def ordering(ring, step, compute):
    direct, copy = ring.device.direct_queue, ring.device.copy_queue
    slot = ring.slot_of(step)
    if step >= ring.pool:
        copy.wait(ring.consumed, step)
        ring.engine.upload(ring.layer_of(step), slot)
    direct.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    direct.signal(ring.consumed, step + 1)
