"""
wrong: plays the scan, and gives up the newest
check: lru_hits
phrase: The best choice there is
rule: lru_hits.longest_ago
"""


def lru_hits(pages, frames, passes):
    order, hits = [], 0
    for page in list(range(pages)) * passes:
        if page in order:
            hits += 1
            order.remove(page)
        elif len(order) == frames:
            order.pop()
        order.append(page)
    return hits
