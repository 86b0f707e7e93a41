"""
wrong: frees the slot and leaves it empty
check: release, gate
phrase: The slots are never refilled
rule: release.refills
"""


def release(ring, layer):
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.step += 1
