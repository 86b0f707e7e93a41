"""
wrong: gives the frame up at once
check: release, gate
phrase: A released page stays
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
    if not pool.table.pins(page):
        pool.evict(page)
