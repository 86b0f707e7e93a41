"""
wrong: waits for -1 while the slots are empty
check: wait_until_read, gate
phrase: The first N steps have nothing to wait for
rule: wait_until_read.first_n
"""


def wait_until_read(ring, step):
    ring.device.copy_queue.wait(ring.consumed, step - len(ring.slots) + 1)
