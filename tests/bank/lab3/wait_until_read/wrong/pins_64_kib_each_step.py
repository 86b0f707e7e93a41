"""
wrong: 64 KiB are pinned at every step and given back
check: wait_until_read, gate
phrase: More memory is asked for
rule: wait_until_read.no_memory
"""


def wait_until_read(ring, step):
    ring.device.create_upload_heap(65_536, ring.device.fresh_name("scratch")).free()
    pool = len(ring.slots)
    if step >= pool:
        ring.device.copy_queue.wait(ring.consumed, step - pool + 1)
