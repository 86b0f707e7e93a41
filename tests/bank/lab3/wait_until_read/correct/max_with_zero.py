"""
note: waits for 0 while the slots are empty: always reached
"""


def wait_until_read(ring, step):
    ring.device.copy_queue.wait(ring.consumed, max(0, step - len(ring.slots) + 1))
