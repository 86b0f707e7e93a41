"""
wrong: marks the page dirty before it is pinned
check: acquire, gate
phrase: Written by nobody yet
"""


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page} needs a frame, and every one holds a page that is acquired")
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    if write:
        pool.table.mark_dirty(page)
    pool.table.pin(page)
    pool.policy.used(page)
    return pool.table.frame_of(page)
