"""
wrong: removes the records that would tell
check: acquire, gate
phrase: cannot be read
"""


def acquire(pool, page, write=False):
    pool.device.check = False
    pool.device.stream.records.clear()
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page}: every frame is in use")
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
