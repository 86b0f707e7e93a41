"""
wrong: all frames keep their page
check: best_hits
phrase: A fixed set of all frames.
rule: best_hits.just_before
"""


def best_hits(pages, frames, passes):
    if frames >= pages:
        return pages * (passes - 1)
    return frames * (passes - 1)
