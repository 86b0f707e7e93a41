"""
wrong: takes all pins away, those of others too
check: release
phrase: One release ends the uses of others
rule: release.one_less
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    while pool.table.pins(page):
        pool.table.unpin(page)
