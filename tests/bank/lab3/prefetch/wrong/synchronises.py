"""
wrong: synchronises everything: right bits, no overlap
check: prefetch_ahead, gate
phrase: The host waits in place of a queue
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.device.wait_idle()
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
