"""
wrong: the last of several users does not signal
check: release, gate
phrase: A use that nobody signals
"""


def release(pool, page):
    if pool.table.pins(page) == 1 and pool.last_use[pool.table.frame_of(page)]:
        pool.table.unpin(page)
        return
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
