"""
wrong: a clean page is signalled, too
check: evict, write_back, gate
phrase: and no page goes home
rule: evict.clean
"""


def evict(pool, page):
    frame = pool.table.frame_of(page)
    if pool.table.is_dirty(page):
        queue, value = pool.device.write_back_queue, pool.saved.last_submitted + 1
        queue.wait(pool.released, pool.last_use[frame])
        queue.copy(pool.home(page), pool.span(frame), label=f"save page {page}")
        queue.signal(pool.saved, value)
        pool.emptied[frame] = value
        pool.returned[page] = value
        pool.table.mark_clean(page)
    else:
        pool.device.write_back_queue.signal(pool.saved, pool.saved.last_submitted + 1)
    pool.policy.removed(page)
    return pool.table.unbind(page)
