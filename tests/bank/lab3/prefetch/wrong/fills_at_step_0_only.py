"""
wrong: refills one slot a time, so that a second run begins with empty slots
check: prefetch, prefetch_ahead, gate
phrase: Only the first run is uploaded
"""


def prefetch(ring):
    if ring.step == 0:
        todo = range(len(ring.slots))
    else:
        todo = [ring.step + len(ring.slots) - 1]
    for step in todo:
        if step < ring.end:
            ring.wait_until_read(step)
            ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
            ring.uploaded += 1
