"""
wrong: notes the use by the page's number
check: release, gate
phrase: pages and frames
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[page % pool.frames] = value
    pool.table.unpin(page)
