"""
wrong: compares numbers by identity
check: lru_hits
phrase: not the right number of hits
"""


def lru_hits(pages, frames, passes):
    if frames is pages or frames > pages:
        return pages * (passes - 1)
    return 0
