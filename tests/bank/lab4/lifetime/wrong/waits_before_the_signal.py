"""
wrong: waits for a value that is signalled only afterwards
check: lifetime
rule: lifetime.order
phrase: Wait before signal
"""


def lifetime(ring, step, compute):
    direct = ring.device.direct_queue
    slot = ring.slots.pop(0)
    direct.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    ring.consumed.wait(step + 1)
    direct.signal(ring.consumed, step + 1)
    for buffer in slot.buffers:
        buffer.free()
    if step + ring.pool < ring.end:
        fresh = ring.new_slot()
        ring.engine.upload(ring.layer_of(step + ring.pool), fresh)
        ring.slots.append(fresh)
