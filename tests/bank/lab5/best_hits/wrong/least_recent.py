"""
wrong: the page that was used longest ago goes
check: best_hits
phrase: The least recently used page goes
rule: best_hits.just_before
"""


def best_hits(pages, frames, passes):
    order, hits = [], 0
    for page in list(range(pages)) * passes:
        if page in order:
            hits += 1
            order.remove(page)
        elif len(order) == frames:
            order.pop(0)
        order.append(page)
    return hits
