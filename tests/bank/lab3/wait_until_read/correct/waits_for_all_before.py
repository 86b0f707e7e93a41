"""
note: over-synchronised: waits for every step up to the slot's reader
"""


def wait_until_read(ring, step):
    copy = ring.device.copy_queue
    for value in range(1, step - len(ring.slots) + 2):
        copy.wait(ring.consumed, value)
