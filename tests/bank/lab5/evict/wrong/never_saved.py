"""
wrong: drops what was written
check: write_back, gate
phrase: is lost
rule: write_back.home
"""


def evict(pool, page):
    frame = pool.table.frame_of(page)
    pool.table.mark_clean(page)
    pool.policy.removed(page)
    return pool.table.unbind(page)
