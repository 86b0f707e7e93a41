"""
note: a condition as a factor
"""


def lru_hits(pages, frames, passes):
    return int(frames >= pages) * (passes - 1) * pages
