"""
wrong: the host waits for the reader: right bits, no overlap
check: wait_until_read, gate
phrase: The host waits in place of a queue
rule: wait_until_read.host
"""


def wait_until_read(ring, step):
    pool = len(ring.slots)
    if step >= pool:
        ring.consumed.wait(step - pool + 1)
