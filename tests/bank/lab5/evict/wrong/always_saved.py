"""
wrong: saves every page
check: evict, write_back, gate
phrase: Clean pages are saved
rule: evict.clean
"""


def evict(pool, page):
    frame = pool.table.frame_of(page)
    if True:
        queue, value = pool.device.write_back_queue, pool.saved.last_submitted + 1
        queue.wait(pool.released, pool.last_use[frame])
        queue.copy(pool.home(page), pool.span(frame), label=f"save page {page}")
        queue.signal(pool.saved, value)
        pool.emptied[frame] = value
        pool.returned[page] = value
        pool.table.mark_clean(page)
    pool.policy.removed(page)
    return pool.table.unbind(page)
