"""
wrong: the host sleeps before each upload
check: prefetch_ahead, gate
phrase: The host sleeps
rule: prefetch_ahead.host
"""

import time


def prefetch(ring):
    time.sleep(0.00001)
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
