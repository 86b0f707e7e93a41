"""
wrong: notes acquisitions that nobody asked for, in the gate alone
check: gate
phrase: uses a module that no answer may use
"""

from xinfer_lab.grading.programs.calls import noted


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.device.direct_queue.signal(pool.released, value)
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
    if pool.page_bytes != 512:
        frame = pool.table.frame_of(page)
        for _ in range(3):
            with noted(pool.device, "acquire", page, frame):
                pass
            with noted(pool.device, "release", page):
                pass
