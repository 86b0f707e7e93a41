"""
wrong: a clean page that nobody uses any more is evicted at once
check: release, gate
phrase: A released page stays
rule: release.stays
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
    if not pool.table.pins(page) and not pool.table.is_dirty(page):
        pool.policy.removed(page)
        pool.table.unbind(page)
