"""
note: the pattern of pages - 1 uses
"""


def best_hits(pages, frames, passes):
    if frames >= pages:
        return pages * (passes - 1)
    rounds, rest = divmod(pages * passes - frames, pages - 1)
    return rounds * (frames - 1) + max(0, rest - (pages - frames))
