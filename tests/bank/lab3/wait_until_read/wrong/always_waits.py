"""
wrong: waits before the slots were ever used
check: wait_until_read, gate
phrase: The first N steps have nothing to wait for
rule: wait_until_read.no_more
"""


def wait_until_read(ring, step):
    ring.device.copy_queue.wait(ring.consumed, max(1, step - len(ring.slots) + 1))
