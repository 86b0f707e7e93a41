"""
wrong: waits for the whole device
check: release, gate
phrase: The host waits in place of a queue
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.wait_idle()
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
