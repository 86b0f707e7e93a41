"""
wrong: returns None where the pool is full
check: acquire
phrase: acquire has to return the page's frame, an int, but returned None
"""


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        return None
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
