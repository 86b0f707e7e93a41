"""
wrong: all frames but one keep their page
check: lru_hits
phrase: the others keep their pages
rule: lru_hits.longest_ago
"""


def lru_hits(pages, frames, passes):
    if frames >= pages:
        return pages * (passes - 1)
    return (frames - 1) * (passes - 1)
