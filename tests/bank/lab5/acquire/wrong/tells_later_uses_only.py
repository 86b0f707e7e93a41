"""
wrong: tells the policy of a use only where the page was there before
check: acquire
phrase: The policy does not hear of uses
rule: acquire.used
"""


def acquire(pool, page, write=False):
    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page}: every frame is in use")
    if pool.table.state(page) == "MIGRATING":
        pool.device.direct_queue.wait(pool.arrived, pool.ready[page])
        pool.table.arrive(page)
    else:
        pool.policy.used(page)
    pool.table.pin(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
