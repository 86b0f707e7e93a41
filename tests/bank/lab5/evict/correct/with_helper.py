"""
note: the write-back is a function of its own
"""


def save(pool, page):
    frame, back = pool.table.frame_of(page), pool.device.write_back_queue
    back.wait(pool.released, pool.last_use[frame])
    with back.record(f"save page {page}") as commands:
        commands.copy(pool.home(page), pool.span(frame))
    value = pool.saved.last_submitted + 1
    back.signal(pool.saved, value)
    pool.emptied[frame], pool.returned[page] = value, value
    pool.table.mark_clean(page)


def evict(pool, page):
    if pool.table.is_dirty(page):
        save(pool, page)
    pool.policy.removed(page)
    return pool.table.unbind(page)
