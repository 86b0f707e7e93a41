"""
wrong: drops the wait on the way
check: mid_call
rule: mid_call.order
phrase: Nobody waits for the copy
"""


def mid_call(ring, step, compute):
    direct, copy = ring.device.direct_queue, ring.device.copy_queue
    *pads, work = ring.slots
    pad = pads[step % ring.pool]
    for buffer in pad.buffers:
        buffer.assume_common()
    for buffer in work.buffers:
        buffer.assume_common()
    with direct.record(f"layer {ring.layer_of(step)}") as cmds:
        for mine, theirs in zip(work.buffers, pad.buffers, strict=True):
            cmds.copy(mine, theirs)
        compute(work, cmds)
    direct.signal(ring.consumed, step + 1)
    if step + ring.pool < ring.end:
        copy.wait(ring.consumed, step + 1)
        ring.engine.upload(ring.layer_of(step + ring.pool), pad)
