"""
wrong: the host waits for the copy as well, before the computing
check: lifetime
rule: lifetime.host
phrase: host
"""


def lifetime(ring, step, compute):
    direct = ring.device.direct_queue
    slot = ring.slots.pop(0)
    ring.engine.copied.wait(slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    direct.signal(ring.consumed, step + 1)
    ring.consumed.wait(step + 1)
    for buffer in slot.buffers:
        buffer.free()
    if step + ring.pool < ring.end:
        fresh = ring.new_slot()
        ring.engine.upload(ring.layer_of(step + ring.pool), fresh)
        ring.slots.append(fresh)
