"""
wrong: notes when a frame is empty the first time alone
check: write_back, gate
phrase: Noted the first time alone
rule: write_back.emptied
"""


def evict(pool, page):
    frame = pool.table.frame_of(page)
    if pool.table.is_dirty(page):
        queue, value = pool.device.write_back_queue, pool.saved.last_submitted + 1
        queue.wait(pool.released, pool.last_use[frame])
        queue.copy(pool.home(page), pool.span(frame), label=f"save page {page}")
        queue.signal(pool.saved, value)
        if not pool.emptied[frame]:
            pool.emptied[frame] = value
        pool.returned[page] = value
        pool.table.mark_clean(page)
    pool.policy.removed(page)
    return pool.table.unbind(page)
