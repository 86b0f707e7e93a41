"""
note: two names in place of one variable, a helper
"""


def hand_over(direct, fence, slot):
    direct.wait(fence, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()


def ordering(ring, step, compute):
    direct, copy, slot = ring.device.direct_queue, ring.device.copy_queue, ring.slot_of(step)
    hand_over(direct, ring.engine.copied, slot)
    compute(slot)
    direct.signal(ring.consumed, step + 1)
    ahead = step + ring.pool
    if ahead < ring.end:
        copy.wait(ring.consumed, step)
        ring.engine.upload(ring.layer_of(ahead), ring.slot_of(ahead))
