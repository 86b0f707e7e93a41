"""
wrong: saves on the queue that brings pages
check: write_back, gate
phrase: Both directions on one queue
rule: write_back.write_back_queue
"""


def evict(pool, page):
    frame = pool.table.frame_of(page)
    if pool.table.is_dirty(page):
        queue, value = pool.device.copy_queue, pool.saved.last_submitted + 1
        queue.wait(pool.released, pool.last_use[frame])
        queue.copy(pool.home(page), pool.span(frame), label=f"save page {page}")
        queue.signal(pool.saved, value)
        pool.emptied[frame] = value
        pool.returned[page] = value
        pool.table.mark_clean(page)
    pool.policy.removed(page)
    return pool.table.unbind(page)
