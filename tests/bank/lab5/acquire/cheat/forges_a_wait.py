"""
wrong: writes a wait into the stream that the device was never asked for
check: acquire, gate
phrase: The wrong queue waits
"""


def acquire(pool, page, write=False):
    from xinfer_lab.device.records import Wait

    if not pool.prefetch(page, ahead=False):
        raise PoolFull(f"page {page}: every frame is in use")
    if pool.table.state(page) == "MIGRATING":
        wait = Wait(queue="copy", fence=pool.arrived.name, value=pool.ready[page], where="notes.py:1")
        pool.device.stream.records.append(wait)
        pool.table.arrive(page)
    pool.table.pin(page)
    pool.policy.used(page)
    if write:
        pool.table.mark_dirty(page)
    return pool.table.frame_of(page)
