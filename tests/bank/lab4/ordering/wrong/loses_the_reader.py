"""
wrong: drops the copy queue's wait on the way
check: ordering
rule: ordering.order
phrase: Nobody waits for the reader
"""


def ordering(ring, step, compute):
    slot = ring.slot_of(step)
    queue = ring.device.direct_queue
    queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    queue.signal(ring.consumed, step + 1)
    if step + ring.pool < ring.end:
        queue = ring.device.copy_queue
        ring.engine.upload(ring.layer_of(step + ring.pool), ring.slot_of(step + ring.pool))
