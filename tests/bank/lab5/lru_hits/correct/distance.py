"""
note: by the uses between two of one page
"""


def found(pages, frames, step):
    others_in_between = pages - 1
    return step >= pages and others_in_between < frames


def lru_hits(pages, frames, passes):
    return sum(found(pages, frames, step) for step in range(pages * passes))
