"""
wrong: 64 KiB are pinned with every upload and given back
check: prefetch, prefetch_ahead, gate
phrase: More memory is asked for
rule: prefetch.no_memory
"""


def prefetch(ring):
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        ring.device.create_upload_heap(65_536, ring.device.fresh_name("scratch")).free()
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
