"""
wrong: signals once for each frame
check: release, gate
phrase: A use that nobody signals
rule: release.noted
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    if not pool.last_use[pool.table.frame_of(page)]:
        pool.device.direct_queue.signal(pool.released, value)
        pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
