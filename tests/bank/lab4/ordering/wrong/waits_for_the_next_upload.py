"""
wrong: mends the queue, and waits for the upload that was submitted last
check: ordering
rule: ordering.beside
phrase: Waits for more than the slot
"""


def ordering(ring, step, compute):
    slot = ring.slot_of(step)
    queue = ring.device.direct_queue
    queue.wait(ring.engine.copied, ring.engine.copied.last_submitted)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    queue.signal(ring.consumed, step + 1)
    if step + ring.pool < ring.end:
        queue = ring.device.copy_queue
        queue.wait(ring.consumed, step)
        ring.engine.upload(ring.layer_of(step + ring.pool), ring.slot_of(step + ring.pool))
