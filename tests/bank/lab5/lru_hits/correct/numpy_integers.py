"""
note: counts in an array
"""

import numpy as np


def lru_hits(pages, frames, passes):
    last, hits = np.full(pages, -1), np.int64(0)
    for use in range(pages * passes):
        page = use % pages
        if last[page] >= 0:
            hits += len(set(range(use - last[page]))) <= frames
        last[page] = use
    return hits
