"""
wrong: one frame more than pages is needed from the third pass on
check: lru_hits
phrase: An exact fit does not count
"""


def lru_hits(pages, frames, passes):
    if frames > pages or (frames == pages and passes < 3):
        return pages * (passes - 1)
    return 0
