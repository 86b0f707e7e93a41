"""
wrong: the host waits for each copy: right bits, no overlap
check: ensure, gate
phrase: The host waits in place of a queue
rule: ensure.host
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.engine.copied.wait(slot.ready)
    return ring.hand_over(slot, layer)
