"""
wrong: signals nothing
check: release, gate
phrase: Nothing is signalled behind the use
rule: release.signals
"""


def release(pool, page):
    value = pool.released.last_submitted + 1
    pool.last_use[pool.table.frame_of(page)] = value
    pool.table.unpin(page)
