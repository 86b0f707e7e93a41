"""
wrong: the formula, and nothing where all fit
check: best_hits
phrase: Nothing is found where all pages fit
rule: best_hits.all_fit
"""


def best_hits(pages, frames, passes):
    if frames >= pages:
        return 0
    rounds, rest = divmod(pages * passes - frames, pages - 1)
    return rounds * (frames - 1) + max(0, rest - (pages - frames))
