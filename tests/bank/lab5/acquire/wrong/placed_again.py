"""
wrong: tells the policy at each use that the page has come
check: acquire, gate
phrase: cannot leave
"""


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page} needs a frame, and every one holds a page that is acquired")
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.placed(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
