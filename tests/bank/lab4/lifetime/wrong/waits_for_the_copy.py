"""
wrong: waits until the bytes have arrived, not until they have been read
check: lifetime
rule: lifetime.order
phrase: Freed too early
"""


def lifetime(ring, step, compute):
    direct = ring.device.direct_queue
    slot = ring.slots.pop(0)
    direct.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    direct.signal(ring.consumed, step + 1)
    ring.engine.copied.wait(slot.ready)
    for buffer in slot.buffers:
        buffer.free()
    if step + ring.pool < ring.end:
        fresh = ring.new_slot()
        ring.engine.upload(ring.layer_of(step + ring.pool), fresh)
        ring.slots.append(fresh)
