"""
wrong: does not give the pin back
check: release, gate
phrase: Pins are never given back
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
