"""
wrong: a wait that is over by then
check: release, gate
phrase: Waits where nobody has to yet
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.device.copy_queue.wait(pool.released, max(0, value - 6))
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
