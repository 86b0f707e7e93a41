"""
wrong: waits for the user of a clean page, too
check: evict, write_back, gate
phrase: and no page goes home
"""


def evict(pool, page):
    frame = pool.table.frame_of(page)
    pool.device.write_back_queue.wait(pool.released, pool.last_use[frame])
    if pool.table.is_dirty(page):
        queue, value = pool.device.write_back_queue, pool.saved.last_submitted + 1
        queue.copy(pool.home(page), pool.span(frame), label=f"save page {page}")
        queue.signal(pool.saved, value)
        pool.emptied[frame] = value
        pool.returned[page] = value
        pool.table.mark_clean(page)
    pool.policy.removed(page)
    return pool.table.unbind(page)
