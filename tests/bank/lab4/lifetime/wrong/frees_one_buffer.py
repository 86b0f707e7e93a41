"""
wrong: gives back one of the two buffers
check: lifetime
rule: lifetime.plan
phrase: memory
"""


def lifetime(ring, step, compute):
    direct = ring.device.direct_queue
    slot = ring.slots.pop(0)
    direct.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    direct.signal(ring.consumed, step + 1)
    ring.consumed.wait(step + 1)
    slot.buffers[0].free()
    if step + ring.pool < ring.end:
        fresh = ring.new_slot()
        ring.engine.upload(ring.layer_of(step + ring.pool), fresh)
        ring.slots.append(fresh)
