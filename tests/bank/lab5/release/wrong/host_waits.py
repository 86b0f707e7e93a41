"""
wrong: the host waits for the use
check: release, gate
phrase: The host waits in place of a queue
rule: release.nobody_waits
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.released.wait(value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
