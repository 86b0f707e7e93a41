"""
wrong: begins with the step that is computed
check: prefetch, prefetch_ahead, gate
phrase: Begin with ring.uploaded
"""


def prefetch(ring):
    for step in range(ring.step, min(ring.step + len(ring.slots), ring.end)):
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
