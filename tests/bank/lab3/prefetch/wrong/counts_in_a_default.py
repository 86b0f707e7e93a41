"""
wrong: uploads are counted in a default argument, for all models together
check: prefetch, prefetch_ahead, gate
phrase: is computed with other weights
"""


def prefetch(ring, count=[0]):  # noqa: B006
    while count[0] < min(ring.step + len(ring.slots), ring.end):
        ring.wait_until_read(count[0])
        ring.engine.upload(ring.layer_of(count[0]), ring.slot_of(count[0]))
        count[0] += 1
        ring.uploaded = count[0]
