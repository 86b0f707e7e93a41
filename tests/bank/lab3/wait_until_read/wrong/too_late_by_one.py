"""
wrong: leaves the first refill out
check: wait_until_read, gate
phrase: write-after-read
"""


def wait_until_read(ring, step):
    pool = len(ring.slots)
    if step > pool:
        ring.device.copy_queue.wait(ring.consumed, step - pool + 1)
