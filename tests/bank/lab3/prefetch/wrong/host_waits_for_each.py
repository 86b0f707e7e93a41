"""
wrong: host blocks after each copy: right bits, no overlap
check: prefetch_ahead, gate
phrase: The host waits in place of a queue
rule: prefetch_ahead.host
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.wait_until_read(step)
        value = ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.engine.copied.wait(value)
        ring.uploaded += 1
