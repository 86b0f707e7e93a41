"""
wrong: sleeps before the wait
check: ensure_fence, gate
rule: ensure_fence.host
phrase: The host sleeps
"""

import time


def ensure(ring, layer):
    time.sleep(0.001)
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)
