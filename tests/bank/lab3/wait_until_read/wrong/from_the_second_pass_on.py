"""
wrong: thinks that the first pass needs no wait
check: wait_until_read, gate
phrase: write-after-read
"""


def wait_until_read(ring, step):
    pool = len(ring.slots)
    if step >= ring.layers:
        ring.device.copy_queue.wait(ring.consumed, step - pool + 1)
