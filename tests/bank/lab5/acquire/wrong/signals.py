"""
wrong: signals what nobody waits for
check: acquire, gate
phrase: signals once in acquire
rule: acquire.nothing_there
"""

from xinfer_lab.paging.errors import PoolFull


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page} needs a frame")
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.device.direct_queue.signal(pool.released, pool.released.last_submitted + 1)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
