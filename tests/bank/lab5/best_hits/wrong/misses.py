"""
wrong: counts the copies
check: best_hits
phrase: The misses are counted
rule: best_hits.hits
"""


def best_hits(pages, frames, passes):
    there, hits, before = set(), 0, None
    for page in list(range(pages)) * passes:
        if page in there:
            pass
        else:
            hits += 1
            if len(there) == frames:
                there.remove(before)
            there.add(page)
        before = page
    return hits
