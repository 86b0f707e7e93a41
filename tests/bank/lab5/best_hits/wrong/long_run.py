"""
wrong: the average of the long run in every pass
check: best_hits
phrase: The long run from the first pass on
rule: best_hits.just_before
"""


def best_hits(pages, frames, passes):
    if frames >= pages:
        return pages * (passes - 1)
    return pages * (frames - 1) * passes // (pages - 1)
