"""
wrong: the long run, once the frames are full
check: best_hits
phrase: not the right number of hits
"""


def best_hits(pages, frames, passes):
    if frames >= pages:
        return pages * (passes - 1)
    return (pages * passes - frames) * (frames - 1) // (pages - 1)
