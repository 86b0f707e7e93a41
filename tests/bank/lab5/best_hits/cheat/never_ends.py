"""
wrong: waits for a better idea
check: best_hits
phrase: took too long
"""


def best_hits(pages, frames, passes):
    while passes:
        pass
