"""
wrong: keeps in a global what the direct queue has waited for, for all pools together
check: acquire, gate
phrase: Nobody waits for the copy
"""

AWAITED = {}


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page} needs a frame, and every one holds a page that is acquired")
    if pool.table.state(page) == "MIGRATING":
        if pool.ready[page] > AWAITED.get("arrived", 0):
            pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
            AWAITED["arrived"] = pool.ready[page]
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
