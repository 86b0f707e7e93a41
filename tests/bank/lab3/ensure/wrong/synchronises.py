"""
wrong: synchronises everything: right bits, no overlap
check: ensure, gate
phrase: The host waits in place of a queue
"""


def ensure(ring, layer):
    ring.device.wait_idle()
    return ring.hand_over(ring.slot_of(ring.step), layer)
