"""
wrong: a third queue waits as well
check: wait_until_read, gate
phrase: queue is given something to do
rule: wait_until_read.two_queues
"""


def wait_until_read(ring, step):
    pool = len(ring.slots)
    if step >= pool:
        ring.device.copy_queue.wait(ring.consumed, step - pool + 1)
        ring.device.write_back_queue.wait(ring.consumed, step - pool + 1)
