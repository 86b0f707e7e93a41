"""
wrong: the highest number goes
check: best_hits
phrase: A fixed set of all frames but one
"""


def best_hits(pages, frames, passes):
    there, hits, before = set(), 0, None
    for page in list(range(pages)) * passes:
        if page in there:
            hits += 1
        else:
            if len(there) == frames:
                there.remove(max(there))
            there.add(page)
        before = page
    return hits
