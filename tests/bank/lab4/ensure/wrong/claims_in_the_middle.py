"""
wrong: claims COMMON in the middle of a call, after a barrier took the buffer elsewhere
check: ensure_state, gate
rule: ensure_state.between_calls
phrase: COMMON asserted in the middle of a call
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    with ring.device.direct_queue.record("prepare") as cmds:
        for buffer in slot.buffers:
            cmds.transition(buffer, "COMMON", "NON_PIXEL_SHADER_RESOURCE")
            buffer.assume_common()
            cmds.transition(buffer, "COMMON", "COPY_SOURCE")
    return slot.holding(layer)
