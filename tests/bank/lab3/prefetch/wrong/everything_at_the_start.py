"""
wrong: uploads everything at the start into N slots
check: prefetch, prefetch_ahead, gate
phrase: More than N layers at the start
"""


def prefetch(ring):
    while ring.uploaded < ring.end:
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
