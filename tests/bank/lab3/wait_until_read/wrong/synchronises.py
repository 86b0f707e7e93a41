"""
wrong: synchronises everything: right bits, no overlap
check: wait_until_read, gate
phrase: The host waits in place of a queue
"""


def wait_until_read(ring, step):
    ring.device.wait_idle()
