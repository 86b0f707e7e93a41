"""
note: Belady's rule in full: looks for each page's next use
"""


def next_use(scan, step, page):
    return scan.index(page, step) if page in scan[step:] else len(scan)


def best_hits(pages, frames, passes):
    scan = list(range(pages)) * passes
    there, hits = [], 0
    for step, page in enumerate(scan):
        if page in there:
            hits += 1
            continue
        if len(there) >= frames:
            there.remove(max(there, key=lambda other: next_use(scan, step, other)))
        there.append(page)
    return hits
