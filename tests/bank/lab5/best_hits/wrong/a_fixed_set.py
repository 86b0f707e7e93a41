"""
wrong: all frames but one keep their page
check: best_hits
phrase: A fixed set of all frames but one
"""


def best_hits(pages, frames, passes):
    if frames >= pages:
        return pages * (passes - 1)
    return (frames - 1) * (passes - 1)
