"""
wrong: refuses where all frames are acquired, also a page that is there
check: acquire
phrase: is refused, though it need not be
"""


def acquire(pool, page, write=False):
    frames = range(len(pool.last_use))
    if all(pool.table.page_in(frame) is not None and pool.table.pins(pool.table.page_in(frame)) for frame in frames):
        raise PoolFull("full")
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page} needs a frame, and every one holds a page that is acquired")
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
