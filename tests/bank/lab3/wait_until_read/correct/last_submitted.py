"""
note: waits for the newest reader: here it is the slot's own
"""


def wait_until_read(ring, step):
    fence = ring.consumed
    ring.device.copy_queue.wait(fence, fence.last_submitted)
