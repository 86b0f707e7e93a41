"""
wrong: the lowest number goes
check: best_hits
phrase: number of hits
"""


def best_hits(pages, frames, passes):
    there, hits, before = set(), 0, None
    for page in list(range(pages)) * passes:
        if page in there:
            hits += 1
        else:
            if len(there) == frames:
                there.remove(min(there))
            there.add(page)
        before = page
    return hits
