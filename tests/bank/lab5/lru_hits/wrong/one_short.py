"""
wrong: one frame too few is enough
check: lru_hits
phrase: One frame too few is enough
rule: lru_hits.longest_ago
"""


def lru_hits(pages, frames, passes):
    return 0 if frames < pages - 1 else pages * (passes - 1)
