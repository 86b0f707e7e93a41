"""
wrong: copies the first half of the page
check: prefetch, gate
phrase: is brought in part
rule: prefetch.whole
"""

from dataclasses import replace


def prefetch(pool, page, ahead=True):
    if pool.table.frame_of(page) is not None:
        return True
    frame = pool.make_room(ahead)
    if frame is None:
        return False
    queue, value = pool.device.copy_queue, pool.arrived.last_submitted + 1
    queue.wait(pool.released, pool.last_use[frame])
    queue.wait(pool.saved, max(pool.emptied[frame], pool.returned[page]))
    there, home = pool.span(frame), pool.home(page)
    queue.copy(replace(there, size=there.size // 2), replace(home, size=home.size // 2))
    queue.signal(pool.arrived, value)
    pool.ready[page] = value
    pool.table.bind(page, frame)
    pool.policy.placed(page)
    return True
