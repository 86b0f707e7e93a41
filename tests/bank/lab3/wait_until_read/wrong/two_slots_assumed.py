"""
wrong: thinks that every pool has two slots
check: wait_until_read, gate
phrase: The first N steps have nothing to wait for
"""


def wait_until_read(ring, step):
    if step >= 2:
        ring.device.copy_queue.wait(ring.consumed, step - 1)
