"""
note: a helper in the same cell
"""


def wait_until_there(pool, page):
    pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
    pool.table.arrive(page)


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        raise PoolFull("no frame")
    if pool.table.state(page) == "MIGRATING":
        wait_until_there(pool, page)
    for note in (pool.table.pin, pool.policy.used, *([pool.table.mark_dirty] if write else [])):
        note(page)
    return pool.table.frame_of(page)
