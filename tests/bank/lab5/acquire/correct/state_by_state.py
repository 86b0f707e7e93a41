"""
note: goes by the table's state
"""


def acquire(pool, page, write=False):
    table, direct = pool.table, pool.device.direct_queue
    if table.state(page) == "IN_HOST" and not pool.prefetch(page, False):
        raise PoolFull("every frame holds a page that is acquired")
    if table.state(page) != "IN_DEVICE":
        direct.wait(pool.arrived, pool.ready[page])
        table.arrive(page)
    pool.policy.used(page)
    table.pin(page)
    if write and not table.is_dirty(page):
        table.mark_dirty(page)
    return table.frame_of(page)
