"""
wrong: lets the host wait
check: ordering
rule: ordering.host
phrase: The host waits in place of a queue
"""


def ordering(ring, step, compute):
    slot = ring.slot_of(step)
    queue = ring.device.direct_queue
    ring.engine.copied.wait(slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    queue.signal(ring.consumed, step + 1)
    if step + ring.pool < ring.end:
        queue = ring.device.copy_queue
        queue.wait(ring.consumed, step)
        ring.engine.upload(ring.layer_of(step + ring.pool), ring.slot_of(step + ring.pool))
