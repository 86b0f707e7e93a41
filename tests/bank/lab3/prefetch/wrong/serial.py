"""
wrong: uploads the next layer when this one is computed: right bits, no overlap
check: prefetch_ahead, gate
phrase: Serial
rule: prefetch_ahead.ahead
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + 1, ring.end):
        step = ring.uploaded
        if step:
            ring.device.copy_queue.wait(ring.consumed, step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
