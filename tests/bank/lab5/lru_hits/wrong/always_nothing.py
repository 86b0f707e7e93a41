"""
wrong: LRU never finds anything
check: lru_hits
phrase: Always nothing
rule: lru_hits.all_fit
"""


def lru_hits(pages, frames, passes):
    return 0
