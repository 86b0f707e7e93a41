"""
wrong: waits for a better idea
check: best_hits
phrase: It did not come to an end
"""


def best_hits(pages, frames, passes):
    while passes:
        pass
