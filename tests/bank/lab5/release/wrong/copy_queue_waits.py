"""
wrong: the copy queue waits for every use at once
check: release, gate
phrase: Waits where nobody has to yet
rule: release.nobody_waits
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.device.copy_queue.wait(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
