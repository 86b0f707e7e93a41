"""
wrong: asks the module that knows
check: evict, write_back, gate
phrase: module that holds the answer
"""


def evict(pool, page):
    from xinfer_lab.labs.lab5.judge.pool import JUDGES

    return pool.table.unbind(page)
