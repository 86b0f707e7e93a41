"""
wrong: does not say that the page is written
check: acquire, gate
phrase: lost
rule: acquire.dirty
"""


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page}: every frame is in use")
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    return pool.table.frame_of(page)
