"""
wrong: notes the newest value that was signalled before
check: write_back, gate
phrase: The value from before the signal
"""


def evict(pool, page):
    frame = pool.table.frame_of(page)
    if pool.table.is_dirty(page):
        queue, value = pool.device.write_back_queue, pool.saved.last_submitted + 1
        pool.emptied[frame] = pool.returned[page] = pool.saved.last_submitted
        queue.wait(pool.released, pool.last_use[frame])
        queue.copy(pool.home(page), pool.span(frame), label=f"save page {page}")
        queue.signal(pool.saved, value)
        pool.table.mark_clean(page)
    pool.policy.removed(page)
    return pool.table.unbind(page)
