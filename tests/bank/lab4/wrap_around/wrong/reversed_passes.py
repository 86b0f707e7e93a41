"""
wrong: runs through the slots backwards in every other pass
check: wrap_around
rule: wrap_around.right_bytes
phrase: other weights
"""


def wrap_around(ring, step, compute):
    direct, copy = ring.device.direct_queue, ring.device.copy_queue

    def place(step):
        turn, layer = divmod(step, ring.layers)
        return ring.slots[(layer if turn % 2 == 0 else ring.layers - 1 - layer) % len(ring.slots)]

    slot = place(step)
    direct.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    compute(slot)
    direct.signal(ring.consumed, step + 1)
    ahead = step + ring.pool
    if ahead < ring.end:
        copy.wait(ring.consumed, step + 1)
        ring.engine.upload(ring.layer_of(ahead), place(ahead))
