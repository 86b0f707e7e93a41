"""
note: no arithmetic: the slots take turns in the list
"""


def take_turns(ring):
    ring.slots.append(ring.slots.pop(0))


def wrap_around(ring, step, compute):
    direct, copy = ring.device.direct_queue, ring.device.copy_queue
    slot = ring.slots[0]
    direct.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    direct.signal(ring.consumed, step + 1)
    if step + ring.pool < ring.end:
        copy.wait(ring.consumed, step + 1)
        ring.engine.upload(ring.layer_of(step + ring.pool), ring.slots[ring.pool])
    take_turns(ring)
