"""
wrong: a released page is clean
check: release, gate
phrase: A released page is as dirty as before
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.mark_clean(page)
    pool.table.unpin(page)
