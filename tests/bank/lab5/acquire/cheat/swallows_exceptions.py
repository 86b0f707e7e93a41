"""
wrong: does what it likes and swallows what is raised
check: acquire, gate
phrase: Nobody waits for the copy
"""


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page}: every frame is in use")
    if pool.table.state(page) == "MIGRATING":
        try:
            pool.device.direct_queue.wait(pool.released, 10**6)
        except Exception:
            pass
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
