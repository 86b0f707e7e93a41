"""
wrong: waits for the layer, over again in each pass
check: wait_until_read, gate
phrase: Counts layers, not steps
"""


def wait_until_read(ring, step):
    pool = len(ring.slots)
    if step >= pool:
        last = (step - pool) % ring.layers
        ring.device.copy_queue.wait(ring.consumed, last + 1)
