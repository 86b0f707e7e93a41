"""
note: leaves out waits for 0, and names its arguments
"""


def prefetch(pool, page, ahead=True):
    if pool.table.frame_of(page) is not None:
        return True
    frame = pool.make_room(ahead=ahead)
    if frame is None:
        return False
    notes = (
        (pool.released, pool.last_use[frame]),
        (pool.saved, pool.emptied[frame]),
        (pool.saved, pool.returned[page]),
    )
    for fence, value in notes:
        if value:
            pool.device.copy_queue.wait(fence, value)
    pool.device.copy_queue.copy(pool.span(frame), pool.home(page))
    pool.ready[page] = pool.arrived.last_submitted + 1
    pool.device.copy_queue.signal(pool.arrived, pool.ready[page])
    pool.table.bind(page, frame)
    pool.policy.placed(page)
    return True
