"""A page gives its frame up, and goes home first if it was written."""

__all__ = ["evict"]


def evict(pool, page):  # type: ignore[no-untyped-def]
    """See Lab 5."""
    frame, queue = pool.table.frame_of(page), pool.device.write_back_queue
    if pool.table.is_dirty(page):
        value = pool.saved.last_submitted + 1
        queue.wait(pool.released, pool.last_use[frame])
        queue.copy(pool.home(page), pool.span(frame), label=f"save page {page}")
        queue.signal(pool.saved, value)
        pool.emptied[frame] = pool.returned[page] = value
        pool.table.mark_clean(page)
    pool.policy.removed(page)
    return pool.table.unbind(page)
