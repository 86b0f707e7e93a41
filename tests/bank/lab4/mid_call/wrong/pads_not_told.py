"""
wrong: claims `work` before the call, and the pads not at all
check: mid_call
rule: mid_call.account
phrase: COMMON assumed for another slot
"""


def mid_call(ring, step, compute):
    direct, copy = ring.device.direct_queue, ring.device.copy_queue
    *pads, work = ring.slots
    pad = pads[step % ring.pool]
    direct.wait(ring.engine.copied, pad.ready)
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
