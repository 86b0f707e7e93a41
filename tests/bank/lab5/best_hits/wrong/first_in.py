"""
wrong: the page that came first goes
check: best_hits
phrase: The least recently used page goes
"""


def best_hits(pages, frames, passes):
    there, hits = [], 0
    for page in list(range(pages)) * passes:
        if page in there:
            hits += 1
            continue
        if len(there) == frames:
            there.pop(0)
        there.append(page)
    return hits
