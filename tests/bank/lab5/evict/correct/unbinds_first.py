"""
note: another order
"""


def evict(pool, page):
    dirty = pool.table.is_dirty(page)
    pool.table.mark_clean(page)
    frame = pool.table.unbind(page)
    pool.policy.removed(page)
    if dirty:
        back = pool.device.write_back_queue
        back.wait(pool.released, pool.last_use[frame])
        back.copy(pool.home(page), pool.span(frame))
        back.signal(pool.saved, pool.saved.last_submitted + 1)
        pool.emptied[frame] = pool.returned[page] = pool.saved.last_submitted
    return frame
