"""The copy queue waits for a slot's last reader."""

__all__ = ["wait_until_read"]


def wait_until_read(ring, step):  # type: ignore[no-untyped-def]
    """See Lab 3."""
    pool = len(ring.slots)
    if step >= pool:
        ring.device.copy_queue.wait(ring.consumed, step - pool + 1)
