"""
wrong: copies a page that is there
check: prefetch, gate
phrase: brought a second time
rule: prefetch.there
"""


def prefetch(pool, page, ahead=True):
    frame = pool.table.frame_of(page)
    there = frame is not None
    frame = frame if there else pool.make_room(ahead)
    if frame is None:
        return False
    queue, value = pool.device.copy_queue, pool.arrived.last_submitted + 1
    queue.wait(pool.released, pool.last_use[frame])
    queue.wait(pool.saved, max(pool.emptied[frame], pool.returned[page]))
    queue.copy(pool.span(frame), pool.home(page), label=f"bring page {page}")
    queue.signal(pool.arrived, value)
    pool.ready[page] = value
    if not there:
        pool.table.bind(page, frame)
        pool.policy.placed(page)
    return True
