"""
wrong: counts its signals in a global, which two pools share
check: release
phrase: Two objects share their books
"""

count = [0]


def release(pool, page):
    count[0] = 1 if pool.released.last_submitted == 0 else count[0] + 1
    value = count[0]
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
