"""
wrong: nothing is returned
check: lru_hits
phrase: It returned nothing
"""


def lru_hits(pages, frames, passes):
    hits = 0 if frames < pages else pages * (passes - 1)
    print(hits)
