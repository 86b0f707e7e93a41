"""
wrong: computes from the pads themselves
check: mid_call
rule: mid_call.one_address
phrase: Another streamer
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
        compute(pad, cmds)
    direct.signal(ring.consumed, step + 1)
    if step + ring.pool < ring.end:
        copy.wait(ring.consumed, step + 1)
        ring.engine.upload(ring.layer_of(step + ring.pool), pad)
