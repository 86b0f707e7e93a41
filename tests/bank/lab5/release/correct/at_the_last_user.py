"""
note: signals when the last user is gone
"""


def release(pool, page):
    table = pool.table
    table.unpin(page)
    if table.pins(page) == 0:
        pool.device.direct_queue.signal(pool.released, pool.released.last_submitted + 1)
        pool.last_use[table.frame_of(page)] = pool.released.last_submitted
