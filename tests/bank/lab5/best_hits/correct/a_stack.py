"""
note: the newest lies on top
"""


def best_hits(pages, frames, passes):
    stack, hits = [], 0
    for step in range(pages * passes):
        page = step % pages
        if page in stack:
            hits += 1
            stack.remove(page)
        elif len(stack) == frames:
            stack.pop()
        stack.append(page)
    return hits
