"""
wrong: notes acquisitions that nobody asked for
check: release, gate
phrase: The recording is not of what was asked
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
    now, frame = len(pool.device.stream), pool.table.frame_of(page)
    for _ in range(3):
        pool.device.calls += [
            {"name": "acquire", "begin": now, "end": now, "values": [page, frame]},
            {"name": "release", "begin": now, "end": now, "values": [page]},
        ]
