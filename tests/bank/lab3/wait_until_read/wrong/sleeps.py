"""
wrong: the host sleeps before each upload
check: wait_until_read, gate
phrase: The host sleeps
rule: wait_until_read.host
"""

import time


def wait_until_read(ring, step):
    time.sleep(0.00001)
    pool = len(ring.slots)
    if step >= pool:
        ring.device.copy_queue.wait(ring.consumed, step - pool + 1)
