"""
wrong: 64 KiB are pinned at every step and given back
check: release, gate
phrase: More memory is asked for
rule: release.no_memory
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.device.create_upload_heap(65_536, ring.device.fresh_name("scratch")).free()
    ring.step += 1
    ring.prefetch()
