"""
note: choose takes the page out of the ring, and removed does not mind
"""


class Clock:
    def __init__(self):
        self.ring = deque()
        self.marked = set()

    def placed(self, page):
        self.ring.append(page)
        self.marked.add(page)

    def used(self, page):
        self.marked.add(page)

    def removed(self, page):
        if page in self.ring:
            self.ring.remove(page)
        self.marked.discard(page)

    def choose(self, may_go, incoming=None):
        for _ in range(2 * len(self.ring)):
            page = self.ring[0]
            self.ring.rotate(-1)
            if not may_go(page):
                continue
            if page not in self.marked:
                self.ring.remove(page)
                return page
            self.marked.discard(page)
        return None
