"""
note: other names, another order
"""


def acquire(pool, page, write=False):
    there = pool.prefetch(page, ahead=False)
    if there is False:
        raise PoolFull(page)
    frame = pool.table.frame_of(page)
    pool.policy.used(page)
    migrating = pool.table.state(page) == "MIGRATING"
    if migrating:
        pool.table.arrive(page)
    pool.table.pin(page)
    if migrating:
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
    if write:
        pool.table.mark_dirty(page)
    return frame
