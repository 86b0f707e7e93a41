"""
wrong: nothing is returned
check: best_hits
phrase: It returned nothing
"""


def best_hits(pages, frames, passes):
    there, hits, before = set(), 0, None
    for page in list(range(pages)) * passes:
        if page in there:
            hits += 1
        else:
            if len(there) == frames:
                there.remove(before)
            there.add(page)
        before = page
    print(hits)
