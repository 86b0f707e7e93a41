"""
wrong: waits for the frame's write-back, not for the page's own
check: prefetch
phrase: A page is fetched before it is home
rule: prefetch.returned
"""


def prefetch(pool, page, ahead=True):
    if pool.table.frame_of(page) is not None:
        return True
    frame = pool.make_room(ahead)
    if frame is None:
        return False
    queue, value = pool.device.copy_queue, pool.arrived.last_submitted + 1
    queue.wait(pool.released, pool.last_use[frame])
    queue.wait(pool.saved, pool.emptied[frame])
    queue.copy(pool.span(frame), pool.home(page), label=f"bring page {page}")
    queue.signal(pool.arrived, value)
    pool.ready[page] = value
    pool.table.bind(page, frame)
    pool.policy.placed(page)
    return True
