"""
wrong: mends the wait and puts the claim in front of it
check: ordering
rule: ordering.account
phrase: COMMON assumed before the wait
"""


def ordering(ring, step, compute):
    slot = ring.slot_of(step)
    queue = ring.device.direct_queue
    for buffer in slot.buffers:
        buffer.assume_common()
    queue.wait(ring.engine.copied, slot.ready)
    compute(slot)
    queue.signal(ring.consumed, step + 1)
    if step + ring.pool < ring.end:
        queue = ring.device.copy_queue
        queue.wait(ring.consumed, step)
        ring.engine.upload(ring.layer_of(step + ring.pool), ring.slot_of(step + ring.pool))
