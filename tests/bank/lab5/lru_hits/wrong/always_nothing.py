"""
wrong: LRU never finds anything
check: lru_hits
phrase: Always nothing
"""


def lru_hits(pages, frames, passes):
    return 0
