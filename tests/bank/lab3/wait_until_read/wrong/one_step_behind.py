"""
wrong: waits for the step before the slot's last reader
check: wait_until_read, gate
phrase: The wait is not for this slot's reader
rule: wait_until_read.read
"""


def wait_until_read(ring, step):
    pool = len(ring.slots)
    if step >= pool:
        ring.device.copy_queue.wait(ring.consumed, step - pool)
