"""
wrong: submits the copy first, then the wait
check: write_back, gate
phrase: The wait comes after the copy
rule: write_back.last_use
"""


def evict(pool, page):
    frame = pool.table.frame_of(page)
    if pool.table.is_dirty(page):
        queue, value = pool.device.write_back_queue, pool.saved.last_submitted + 1
        queue.copy(pool.home(page), pool.span(frame), label=f"save page {page}")
        queue.wait(pool.released, pool.last_use[frame])
        queue.signal(pool.saved, value)
        pool.emptied[frame] = value
        pool.returned[page] = value
        pool.table.mark_clean(page)
    pool.policy.removed(page)
    return pool.table.unbind(page)
