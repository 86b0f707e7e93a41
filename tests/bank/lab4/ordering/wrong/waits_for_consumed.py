"""
wrong: the direct queue waits for the fence that it signals itself
check: ordering
rule: ordering.order
phrase: A wait for another fence
"""


def ordering(ring, step, compute):
    slot = ring.slot_of(step)
    queue = ring.device.direct_queue
    queue.wait(ring.consumed, step) if step else None
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    queue.signal(ring.consumed, step + 1)
    if step + ring.pool < ring.end:
        queue = ring.device.copy_queue
        queue.wait(ring.consumed, step)
        ring.engine.upload(ring.layer_of(step + ring.pool), ring.slot_of(step + ring.pool))
