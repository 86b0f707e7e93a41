"""
wrong: waits for everything that the direct queue was given
check: write_back
phrase: Waits for more than its frame
rule: write_back.no_later
"""


def evict(pool, page):
    frame = pool.table.frame_of(page)
    if pool.table.is_dirty(page):
        queue, value = pool.device.write_back_queue, pool.saved.last_submitted + 1
        queue.wait(pool.released, pool.released.last_submitted)
        queue.copy(pool.home(page), pool.span(frame), label=f"save page {page}")
        queue.signal(pool.saved, value)
        pool.emptied[frame] = value
        pool.returned[page] = value
        pool.table.mark_clean(page)
    pool.policy.removed(page)
    return pool.table.unbind(page)
