"""
note: another order
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.table.unpin(page)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.device.direct_queue.signal(pool.released, value)
