"""
wrong: counts the copies
check: lru_hits
phrase: The misses are counted
"""


def lru_hits(pages, frames, passes):
    return pages * passes if frames < pages else pages
