"""
note: counts what is fetched, with an ordered dict
"""

from collections import OrderedDict


def best_hits(pages, frames, passes):
    there, fetched = OrderedDict(), 0
    for use in range(pages * passes):
        page = use % pages
        if page not in there:
            fetched += 1
            if len(there) >= frames:
                there.popitem()
        there[page] = True
        there.move_to_end(page)
    return pages * passes - fetched
