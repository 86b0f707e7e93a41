"""
wrong: refuses rather than take the frame of a page on its way
check: acquire
phrase: A page on its way may go when another one is needed now
rule: acquire.fetches
"""


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=True):
        raise PoolFull(f"page {page}: every frame is in use")
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
