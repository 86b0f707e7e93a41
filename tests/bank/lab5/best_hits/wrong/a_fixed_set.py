"""
wrong: all frames but one keep their page
check: best_hits
phrase: A fixed set of all frames but one
rule: best_hits.just_before
"""


def best_hits(pages, frames, passes):
    if frames >= pages:
        return pages * (passes - 1)
    return (frames - 1) * (passes - 1)
