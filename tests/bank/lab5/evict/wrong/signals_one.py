"""
wrong: signals the same value for each copy home
check: write_back, gate
phrase: A fence value is used twice
rule: write_back.own_value
"""


def evict(pool, page):
    frame = pool.table.frame_of(page)
    if pool.table.is_dirty(page):
        queue, value = pool.device.write_back_queue, 1
        queue.wait(pool.released, pool.last_use[frame])
        queue.copy(pool.home(page), pool.span(frame), label=f"save page {page}")
        queue.signal(pool.saved, value)
        pool.emptied[frame] = value
        pool.returned[page] = value
        pool.table.mark_clean(page)
    pool.policy.removed(page)
    return pool.table.unbind(page)
