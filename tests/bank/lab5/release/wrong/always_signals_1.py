"""
wrong: signals the same value each time
check: release, gate
phrase: A fence value is used twice
rule: release.own_value
"""


def release(pool, page):
    value = 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
