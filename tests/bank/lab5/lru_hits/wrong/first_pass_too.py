"""
wrong: the first pass finds pages
check: lru_hits
phrase: The first pass finds pages too
rule: lru_hits.first_pass
"""


def lru_hits(pages, frames, passes):
    return 0 if frames < pages else pages * passes
