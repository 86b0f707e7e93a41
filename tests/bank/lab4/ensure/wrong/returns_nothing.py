"""
wrong: forgets to return
check: ensure_fence, ensure_state, gate
rule: ensure_state.returns
phrase: ensure has to return
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    slot.holding(layer)
