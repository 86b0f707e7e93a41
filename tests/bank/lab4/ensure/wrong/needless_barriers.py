"""
wrong: claims COMMON, then records barriers in a list of their own
check: ensure_state, gate
rule: ensure_state.no_barrier
phrase: that nobody needs
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    for buffer in slot.buffers:
        buffer.assume_common()
    with ring.device.direct_queue.record("barriers") as cmds:
        for buffer in slot.buffers:
            cmds.transition(buffer, "COMMON", "NON_PIXEL_SHADER_RESOURCE")
    return slot.holding(layer)
