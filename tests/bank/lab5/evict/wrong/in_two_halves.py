"""
wrong: saves the page in two copies
check: write_back, gate
phrase: is saved in part
"""

from dataclasses import replace


def evict(pool, page):
    frame = pool.table.frame_of(page)
    if pool.table.is_dirty(page):
        queue, value = pool.device.write_back_queue, pool.saved.last_submitted + 1
        queue.wait(pool.released, pool.last_use[frame])
        there, home = pool.span(frame), pool.home(page)
        half = there.size // 2
        queue.copy(replace(home, size=half), replace(there, size=half))
        rest = {"size": half}
        queue.copy(replace(home, offset=home.offset + half, **rest), replace(there, offset=there.offset + half, **rest))
        queue.signal(pool.saved, value)
        pool.emptied[frame] = value
        pool.returned[page] = value
        pool.table.mark_clean(page)
    pool.policy.removed(page)
    return pool.table.unbind(page)
