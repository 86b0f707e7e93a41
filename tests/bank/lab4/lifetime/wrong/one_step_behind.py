"""
wrong: waits for the step before
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
    ring.consumed.wait(step)
    for buffer in slot.buffers:
        buffer.free()
    if step + ring.pool < ring.end:
        fresh = ring.new_slot()
        ring.engine.upload(ring.layer_of(step + ring.pool), fresh)
        ring.slots.append(fresh)
