"""
wrong: notes a frame's last use the first time alone
check: release, gate
phrase: Noted the first time alone
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = pool.last_use[pool.table.frame_of(page)] or value
    pool.table.unpin(page)
