"""
note: finds the frame by asking each
"""


def release(pool, page):
    (frame,) = (frame for frame in range(len(pool.last_use)) if pool.table.page_in(frame) == page)
    pool.last_use[frame] = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, pool.last_use[frame])
    pool.table.unpin(page)
