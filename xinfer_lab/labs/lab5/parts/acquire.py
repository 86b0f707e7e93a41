"""The direct queue may use a page."""

from xinfer_lab.paging.errors import PoolFull

__all__ = ["acquire"]


def acquire(pool, page, write=False):  # type: ignore[no-untyped-def]
    """See Lab 5."""
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page} needs a frame, and every one of them holds a page that is acquired")
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
