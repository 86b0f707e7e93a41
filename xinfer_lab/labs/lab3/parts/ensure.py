"""The direct queue waits for a slot's copy."""

__all__ = ["ensure"]


def ensure(ring, layer):  # type: ignore[no-untyped-def]
    """See Lab 3."""
    slot = ring.slot_of(ring.step)
    ring.device.direct_queue.wait(ring.engine.copied, slot.ready)
    return ring.hand_over(slot, layer)
