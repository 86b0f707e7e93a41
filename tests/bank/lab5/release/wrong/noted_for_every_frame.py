"""
wrong: notes the value for every frame
check: release, gate
phrase: Noted for other frames, too
rule: release.no_more
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[:] = [value] * len(pool.last_use)
    pool.table.unpin(page)
