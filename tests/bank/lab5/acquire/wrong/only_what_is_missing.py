"""
wrong: waits only for what it fetched itself, not for what is on its way
check: acquire, gate
phrase: Nobody waits for the copy
rule: acquire.waits
"""


def acquire(pool, page, write=False):
    there = pool.table.frame_of(page) is not None
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page}: every frame is in use")
    if pool.table.state(page) == "MIGRATING":
        if not there:
            pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
