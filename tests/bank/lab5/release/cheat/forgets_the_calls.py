"""
wrong: erases the notes of what was called
check: release, gate
phrase: copied by nobody
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
    pool.device.calls.clear()
