"""
wrong: from four slots on the reader is reckoned one step early
check: wait_until_read, gate
phrase: write-after-read
rule: wait_until_read.read
"""


def wait_until_read(ring, step):
    pool = len(ring.slots)
    if step >= pool:
        ring.device.copy_queue.wait(ring.consumed, max(0, step - pool + (pool < 4)))
