"""
wrong: waits for step 0 only: a value stays reached
check: wait_until_read, gate
phrase: The wait is not for this slot's reader
"""


def wait_until_read(ring, step):
    pool = len(ring.slots)
    if step >= pool:
        ring.device.copy_queue.wait(ring.consumed, 1)
