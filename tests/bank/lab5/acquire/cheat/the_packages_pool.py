"""
wrong: asks the package's own pool
check: acquire, gate
phrase: holds
"""

from xinfer_lab.paging.pool import HybridMemoryPool as Given


def acquire(pool, page, write=False):
    Given.acquire(pool, page, write=write)
    return pool.table.frame_of(page)
