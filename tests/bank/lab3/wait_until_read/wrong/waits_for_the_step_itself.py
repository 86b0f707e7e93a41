"""
wrong: waits until the step to be uploaded has been computed
check: wait_until_read, gate
phrase: Waits for a later step than the slot's last reader
"""


def wait_until_read(ring, step):
    pool = len(ring.slots)
    if step >= pool:
        ring.device.copy_queue.wait(ring.consumed, step + 1)
