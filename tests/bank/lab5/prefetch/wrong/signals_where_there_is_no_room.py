"""
wrong: signals where there is no room, too
check: prefetch, gate
phrase: Something is submitted where there is no frame
rule: prefetch.no_room
"""


def prefetch(pool, page, ahead=True):
    if pool.table.frame_of(page) is not None:
        return True
    frame = pool.make_room(ahead)
    queue, value = pool.device.copy_queue, pool.arrived.last_submitted + 1
    if frame is None:
        queue.signal(pool.arrived, value)
        return False
    queue.wait(pool.released, pool.last_use[frame])
    queue.wait(pool.saved, max(pool.emptied[frame], pool.returned[page]))
    queue.copy(pool.span(frame), pool.home(page), label=f"bring page {page}")
    queue.signal(pool.arrived, value)
    pool.ready[page] = value
    pool.table.bind(page, frame)
    pool.policy.placed(page)
    return True
