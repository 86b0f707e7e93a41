"""
wrong: reads what the notebook's table stores, and the check brings another table
check: acquire
phrase: The pool's table and policy are not yours here
rule: acquire.calls_only
"""


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page}: every frame is in use")
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.entries[page].frame
