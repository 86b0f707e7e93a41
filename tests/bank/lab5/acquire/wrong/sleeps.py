"""
wrong: sleeps until the copy should be there
check: acquire, gate
phrase: The host sleeps
rule: acquire.host
"""

import time


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page} needs a frame, and every one holds a page that is acquired")
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        time.sleep(0.00001)
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
