"""
wrong: a slot for every layer
check: wrap_around
rule: wrap_around.plan
phrase: Layers made resident
"""


def wrap_around(ring, step, compute):
    direct, copy = ring.device.direct_queue, ring.device.copy_queue
    while len(ring.slots) < ring.layers:
        ring.slots.append(ring.new_slot())
    slot = ring.slots[ring.layer_of(step)]
    direct.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    direct.signal(ring.consumed, step + 1)
    ahead = step + ring.pool
    if ahead < ring.end:
        copy.wait(ring.consumed, step + 1)
        ring.engine.upload(ring.layer_of(ahead), ring.slots[ring.layer_of(ahead)])
