"""
wrong: goes on where there is no frame
check: acquire
phrase: A refusal is not looked at
"""


def acquire(pool, page, write=False):
    pool.prefetch(page, ahead=False)
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
