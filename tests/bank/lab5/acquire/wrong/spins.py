"""
wrong: tries again until a frame is free
check: acquire
phrase: It spins
rule: acquire.pool_full
"""


def acquire(pool, page, write=False):
    while not pool.prefetch(page, ahead=False):
        pass
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
