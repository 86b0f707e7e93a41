"""
wrong: counts with the package's rule
check: best_hits
phrase: module that holds the answer
"""


def best_hits(pages, frames, passes):
    from xinfer_lab.paging.belady import Belady
    from xinfer_lab.labs.lab5.given.replacement import count_hits

    scan = list(range(pages)) * passes
    return count_hits(Belady(scan), scan, frames)
