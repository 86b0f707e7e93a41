"""
wrong: reads what the notebook's table stores, and the check brings another table
check: evict, write_back
phrase: The pool's table and policy are not yours here
rule: evict.calls_only
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
    pool.table.entries[page].dirty = False
    pool.policy.removed(page)
    return pool.table.unbind(page)
