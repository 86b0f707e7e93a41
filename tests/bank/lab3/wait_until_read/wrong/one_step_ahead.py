"""
wrong: waits for a step that has not been handed in
check: wait_until_read, gate
phrase: Wait before signal
"""


def wait_until_read(ring, step):
    pool = len(ring.slots)
    if step >= pool:
        ring.device.copy_queue.wait(ring.consumed, step - pool + 2)
