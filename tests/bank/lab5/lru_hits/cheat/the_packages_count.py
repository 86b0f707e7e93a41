"""
wrong: counts with the package
check: lru_hits
phrase: module that holds the answer
"""


def lru_hits(pages, frames, passes):
    from xinfer_lab.paging.policy import open_policy
    from xinfer_lab.labs.lab5.given.replacement import count_hits, cyclic_scan

    return count_hits(open_policy("lru"), cyclic_scan(pages, passes), frames)
