"""
wrong: the host sleeps in every call
check: release, gate
phrase: The host sleeps
rule: release.host
"""

import time


def release(ring, layer):
    time.sleep(0.00001)
    ring.device.direct_queue.signal(ring.consumed, ring.step + 1)
    ring.step += 1
    ring.prefetch()
