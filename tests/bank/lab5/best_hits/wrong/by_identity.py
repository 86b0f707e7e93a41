"""
wrong: compares pages by identity
check: best_hits
phrase: not the right number of hits
"""


def best_hits(pages, frames, passes):
    there, hits, before = [], 0, None
    for page in list(range(pages)) * passes:
        page = int(str(page))
        if any(page is other for other in there):
            hits += 1
        else:
            if len(there) == frames:
                there = [other for other in there if other is not before]
            there.append(page)
        before = page
    return hits
