"""
note: refuses with a class of its own below PoolFull
"""


class NoFrame(PoolFull):
    """No frame for a page."""


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        raise NoFrame(page)
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
