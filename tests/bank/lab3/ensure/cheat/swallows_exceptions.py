"""
wrong: does what it likes and swallows what is raised
check: ensure, gate
phrase: Nobody waits for the copy
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    try:
        ring.device.direct_queue.wait(ring.consumed, 10**6)
    except Exception:
        pass
    return ring.hand_over(slot, layer)
