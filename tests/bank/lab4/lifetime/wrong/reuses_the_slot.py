"""
wrong: turns it into a ring
check: lifetime
rule: lifetime.own_memory
phrase: Another streamer
"""


def lifetime(ring, step, compute):
    direct = ring.device.direct_queue
    slot = ring.slots.pop(0)
    direct.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    direct.signal(ring.consumed, step + 1)
    if step + ring.pool < ring.end:
        fresh = slot
        ring.device.copy_queue.wait(ring.consumed, step + 1)
        ring.engine.upload(ring.layer_of(step + ring.pool), fresh)
        ring.slots.append(fresh)
