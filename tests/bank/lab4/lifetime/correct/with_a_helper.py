"""
note: a helper, other names, slot.free()
"""


def give_back(slot, fence, value):
    fence.wait(value)
    slot.free()


def lifetime(ring, step, compute):
    direct, now = ring.device.direct_queue, ring.slots[0]
    del ring.slots[0]
    direct.wait(ring.engine.copied, now.ready)
    for part in now.buffers:
        part.assume_common()
    compute(now)
    direct.signal(ring.consumed, step + 1)
    give_back(now, ring.consumed, step + 1)
    ahead = step + ring.pool
    if ahead < ring.end:
        ring.slots.append(ring.new_slot())
        ring.engine.upload(ring.layer_of(ahead), ring.slots[-1])
