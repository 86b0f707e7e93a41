"""
wrong: the copy queue says that the direct queue is done
check: release, gate
phrase: The wrong queue signals
"""


def release(ring, layer):
    ring.device.copy_queue.signal(ring.consumed, ring.step + 1)
    ring.step += 1
    ring.prefetch()
