"""
wrong: a hit rate of frames / pages
check: lru_hits
phrase: What fits is found
rule: lru_hits.longest_ago
"""


def lru_hits(pages, frames, passes):
    if frames >= pages:
        return pages * (passes - 1)
    return pages * (passes - 1) * frames // pages
