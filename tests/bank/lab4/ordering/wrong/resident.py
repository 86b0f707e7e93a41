"""
wrong: uploads every layer into memory of its own, once
check: ordering
phrase: Layers made resident
"""

KEPT = {}


def ordering(ring, step, compute):
    direct, layer = ring.device.direct_queue, ring.layer_of(step)
    if step < ring.pool:
        KEPT[id(ring), layer] = ring.slots[step]
    if (id(ring), layer) not in KEPT:
        KEPT[id(ring), layer] = ring.new_slot()
        ring.engine.upload(layer, KEPT[id(ring), layer])
    slot = KEPT[id(ring), layer]
    direct.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
