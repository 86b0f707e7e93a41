"""
wrong: mends the queue, and pins memory in each step
check: ordering
rule: ordering.no_memory
phrase: Memory is allocated
"""


def ordering(ring, step, compute):
    slot = ring.slot_of(step)
    queue = ring.device.direct_queue
    queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    ring.device.create_upload_heap(4096, ring.device.fresh_name("notes"))
    compute(slot)
    queue.signal(ring.consumed, step + 1)
    if step + ring.pool < ring.end:
        queue = ring.device.copy_queue
        queue.wait(ring.consumed, step)
        ring.engine.upload(ring.layer_of(step + ring.pool), ring.slot_of(step + ring.pool))
