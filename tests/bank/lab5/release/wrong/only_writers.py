"""
wrong: signals only where the page was written
check: release, gate
phrase: Nobody knows when the frame was used last
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    if not pool.table.is_dirty(page):
        pool.table.unpin(page)
        return
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
