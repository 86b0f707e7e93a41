"""
wrong: notes the value before its own
check: release, gate
phrase: The value from before the signal
rule: release.noted
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value - 1
    pool.table.unpin(page)
