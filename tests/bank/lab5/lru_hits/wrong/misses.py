"""
wrong: counts the copies
check: lru_hits
phrase: The misses are counted
rule: lru_hits.hits
"""


def lru_hits(pages, frames, passes):
    return pages * passes if frames < pages else pages
