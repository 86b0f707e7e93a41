"""
wrong: the average, not rounded
check: best_hits
phrase: A whole number was asked for
rule: best_hits.whole
"""


def best_hits(pages, frames, passes):
    if frames >= pages:
        return pages * (passes - 1)
    return pages * (frames - 1) * (passes - 1) / (pages - 1)
