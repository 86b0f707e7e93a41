"""
wrong: a wait that holds nobody back
check: release, gate
phrase: release lets the copy queue wait
rule: release.nobody_waits
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.device.copy_queue.wait(pool.released, 0)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
