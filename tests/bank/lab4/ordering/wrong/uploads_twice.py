"""
wrong: mends the queue, and uploads each layer twice
check: ordering
rule: ordering.each_once
phrase: uploaded
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
        queue.wait(ring.consumed, step)
        for _ in range(2):
            ring.engine.upload(ring.layer_of(step + ring.pool), ring.slot_of(step + ring.pool))
