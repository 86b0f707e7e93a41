"""
note: notes before it submits, and returns what it asked first
"""


def evict(pool, page):
    frame = pool.table.frame_of(page)
    if pool.table.is_dirty(page):
        queue, value = pool.device.write_back_queue, pool.saved.last_submitted + 1
        pool.emptied[frame] = pool.returned[page] = value
        queue.wait(pool.released, pool.last_use[frame])
        queue.copy(pool.home(page), pool.span(frame), label=f"save page {page}")
        queue.signal(pool.saved, value)
        pool.table.mark_clean(page)
    pool.policy.removed(page)
    pool.table.unbind(page)
    return frame
