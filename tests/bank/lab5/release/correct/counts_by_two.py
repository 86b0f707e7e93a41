"""
note: any growing value will do
"""


def release(pool, page):
    value = pool.released.last_submitted + 2
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
