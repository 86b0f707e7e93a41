"""
wrong: waits on the wrong queue
check: wait_until_read, gate
phrase: The wrong queue waits
rule: wait_until_read.copy_queue
"""


def wait_until_read(ring, step):
    pool = len(ring.slots)
    if step >= pool:
        ring.device.direct_queue.wait(ring.consumed, step - pool + 1)
