"""
note: asks whether it is there before it fetches, and returns a number of NumPy
"""

import numpy as np


def acquire(pool, page, write=False):
    if pool.table.state(page) == "IN_HOST" and not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page} needs a frame, and every one holds a page that is acquired")
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return np.int64(pool.table.frame_of(page))
