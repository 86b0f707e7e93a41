"""
wrong: reads what the notebook's table stores, and the check brings another table
check: release
phrase: The pool's table and policy are not yours here
rule: release.calls_only
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.entries[page].frame] = value
    pool.table.unpin(page)
