"""
wrong: an exact fit does not count
check: lru_hits
phrase: An exact fit does not count
rule: lru_hits.all_fit
"""


def lru_hits(pages, frames, passes):
    return pages * (passes - 1) if frames > pages else 0
