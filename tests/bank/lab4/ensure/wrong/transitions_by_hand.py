"""
wrong: records barriers from the stale account in place of the claim
check: ensure_state, gate
rule: ensure_state.told
phrase: Barriers by hand from a stale account
"""


def ensure(ring, layer):
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    with ring.device.direct_queue.record("take over") as cmds:
        for buffer in slot.buffers:
            cmds.transition(buffer, buffer.tracked_state, "NON_PIXEL_SHADER_RESOURCE")
    return slot.holding(layer)
