"""
wrong: counts after it fetched
check: best_hits
phrase: Found when it is fetched
rule: best_hits.first_pass
"""


def best_hits(pages, frames, passes):
    there, hits, before = set(), 0, None
    for page in list(range(pages)) * passes:
        if page not in there and len(there) == frames:
            there.remove(before)
        there.add(page)
        hits += page in there
        before = page
    return hits
