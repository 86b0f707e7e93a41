"""
wrong: waits for the copies' own fence
check: wait_until_read, gate
phrase: The wrong queue waits
"""


def wait_until_read(ring, step):
    pool = len(ring.slots)
    if step >= pool:
        ring.device.copy_queue.wait(ring.engine.copied, step - pool + 1)
