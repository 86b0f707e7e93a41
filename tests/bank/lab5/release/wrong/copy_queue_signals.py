"""
wrong: the copy queue signals
check: release, gate
phrase: The wrong queue signals
rule: release.direct_queue
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.copy_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
