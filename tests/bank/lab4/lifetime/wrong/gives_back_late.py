"""
wrong: gives memory back only to have room for the next upload, and so never that of the last steps
check: lifetime
rule: lifetime.given_back
phrase: Memory kept in place of given back
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
    if step + ring.pool < ring.end:
        for buffer in slot.buffers:
            buffer.free()
        fresh = ring.new_slot()
        ring.engine.upload(ring.layer_of(step + ring.pool), fresh)
        ring.slots.append(fresh)
    else:
        ring.kept = [*getattr(ring, "kept", []), slot]
