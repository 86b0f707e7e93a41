"""
note: one loop over the buffers of both, before the list
"""


def mid_call(ring, step, compute):
    direct, copy = ring.device.direct_queue, ring.device.copy_queue
    *pads, work = ring.slots
    pad = pads[step % ring.pool]
    direct.wait(ring.engine.copied, pad.ready)
    for buffer in [*pad.buffers, *work.buffers]:
        buffer.assume_common()
    with direct.record(f"layer {ring.layer_of(step)}") as cmds:
        for mine, theirs in zip(work.buffers, pad.buffers, strict=True):
            cmds.copy(mine, theirs)
        compute(work, cmds)
    direct.signal(ring.consumed, step + 1)
    if step + ring.pool < ring.end:
        copy.wait(ring.consumed, step + 1)
        ring.engine.upload(ring.layer_of(step + ring.pool), pad)
