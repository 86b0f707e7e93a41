"""
wrong: waits although the page is there
check: acquire, gate
phrase: the page is there
rule: acquire.nothing_there
"""


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page}: every frame is in use")
    pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
    if pool.table.state(page) == "MIGRATING":
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
