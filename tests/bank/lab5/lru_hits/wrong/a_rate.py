"""
wrong: returns a share
check: lru_hits
phrase: number of hits
rule: lru_hits.whole
"""


def lru_hits(pages, frames, passes):
    if frames >= pages:
        return (passes - 1) / passes
    return 0
