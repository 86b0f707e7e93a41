"""
wrong: notes something for a clean page, too
check: write_back
phrase: Noted, and not saved
rule: write_back.notes_stay
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
    pool.emptied[frame] = pool.saved.last_submitted
    pool.policy.removed(page)
    return pool.table.unbind(page)
