"""
wrong: copies only the first of the two buffers
check: mid_call
rule: mid_call.right_bytes
phrase: not uploaded whole
"""


def mid_call(ring, step, compute):
    direct, copy = ring.device.direct_queue, ring.device.copy_queue
    *pads, work = ring.slots
    pad = pads[step % ring.pool]
    direct.wait(ring.engine.copied, pad.ready)
    for buffer in pad.buffers:
        buffer.assume_common()
    for buffer in work.buffers:
        buffer.assume_common()
    with direct.record(f"layer {ring.layer_of(step)}") as cmds:
        cmds.copy(work.buffers[0], pad.buffers[0])
        compute(work, cmds)
    direct.signal(ring.consumed, step + 1)
    if step + ring.pool < ring.end:
        copy.wait(ring.consumed, step + 1)
        ring.engine.upload(ring.layer_of(step + ring.pool), pad)
