"""
wrong: does not note who used the frame last
check: release, gate
phrase: Nobody knows when the frame was used last
rule: release.noted
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.table.unpin(page)
