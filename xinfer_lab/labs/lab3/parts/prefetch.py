"""Uploads go out as far ahead as there are slots."""

__all__ = ["prefetch"]


def prefetch(ring):  # type: ignore[no-untyped-def]
    """See Lab 3."""
    while ring.uploaded < min(ring.step + len(ring.slots), ring.end):
        step = ring.uploaded
        ring.wait_until_read(step)
        ring.engine.upload(ring.layer_of(step), ring.slot_of(step))
        ring.uploaded += 1
