"""
wrong: the streamer that the notebook shows to compare with
check: wrap_around
rule: wrap_around.right_bytes
phrase: s mod (N + 1)
"""


def wrap_around(ring, step, compute):
    direct, copy = ring.device.direct_queue, ring.device.copy_queue
    slot = ring.slot_of(step)
    direct.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    direct.signal(ring.consumed, step + 1)
    if step + ring.pool < ring.end:
        copy.wait(ring.consumed, step + 1)
        ring.engine.upload(ring.layer_of(step + ring.pool), slot)
