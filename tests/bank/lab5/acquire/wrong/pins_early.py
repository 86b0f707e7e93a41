"""
wrong: reads while it is on its way: pins before it has arrived
check: acquire, gate
phrase: A migrating page is never read
"""


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page}: every frame is in use")
    pool.table.pin(page)
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
