"""
wrong: notes a value that is signalled later, if at all
check: release, gate
phrase: Another value is noted than signalled
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value + 1
    pool.table.unpin(page)
