"""
wrong: removes the records that would tell
check: wait_until_read, gate
phrase: The stream cannot be run
"""


def wait_until_read(ring, step):
    ring.device.check = False
    ring.device.stream.records.clear()
