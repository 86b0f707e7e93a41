"""
wrong: waits for a step that has not been handed in
check: wait_until_read, gate
phrase: Waits for a later step than the slot's last reader
rule: wait_until_read.no_more
"""


def wait_until_read(ring, step):
    pool = len(ring.slots)
    if step >= pool:
        ring.device.copy_queue.wait(ring.consumed, step - pool + 2)
