"""
wrong: waits on the host, and notes that it was not in a call
check: release, gate
phrase: The recording is not of what was asked
"""


def release(pool, page):
    for call in pool.device.calls:
        if call["name"] == "release":
            call["end"] = call["begin"] + 1
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
    if 1 < value < 4:
        pool.released.wait(value - 1)
