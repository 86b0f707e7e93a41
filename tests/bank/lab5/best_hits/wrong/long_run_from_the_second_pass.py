"""
wrong: the average from the second pass on
check: best_hits
phrase: The long run from the second pass on
"""


def best_hits(pages, frames, passes):
    if frames >= pages:
        return pages * (passes - 1)
    return pages * (frames - 1) * (passes - 1) // (pages - 1)
