"""
wrong: only a page that has just come is made dirty
check: acquire
phrase: Only a page that has just come is made dirty
rule: acquire.dirty
"""


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page} needs a frame, and every one holds a page that is acquired")
    came = pool.table.state(page) == "MIGRATING"
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write and came:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
