"""The direct queue has been given its last command on a page."""

__all__ = ["release"]


def release(pool, page):  # type: ignore[no-untyped-def]
    """See Lab 5."""
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
