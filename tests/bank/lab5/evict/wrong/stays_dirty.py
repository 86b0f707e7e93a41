"""
wrong: does not say that the page is clean
check: write_back, gate
phrase: A page that was saved is clean
rule: write_back.mark_clean
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
    pool.policy.removed(page)
    return pool.table.unbind(page)
