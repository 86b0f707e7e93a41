"""
wrong: as many are found as fit
check: lru_hits
phrase: What fits is found
rule: lru_hits.longest_ago
"""


def lru_hits(pages, frames, passes):
    if frames >= pages:
        return pages * (passes - 1)
    return frames * (passes - 1)
