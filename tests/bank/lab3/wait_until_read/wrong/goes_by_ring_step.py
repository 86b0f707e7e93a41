"""
wrong: waits for ring.step, which is the right value only while release refills
check: wait_until_read
phrase: Goes by ring.step
"""


def wait_until_read(ring, step):
    if step >= len(ring.slots):
        ring.device.copy_queue.wait(ring.consumed, ring.step)
