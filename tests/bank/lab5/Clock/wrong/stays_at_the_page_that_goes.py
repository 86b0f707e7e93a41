"""
wrong: the hand does not move past the page that goes
check: clock, clock_pins
phrase: It gives up another page
"""


class Clock:
    def __init__(self):
        self.ring = deque()
        self.marked = set()

    def placed(self, page):
        self.ring.append(page)
        self.ring.rotate(0 if len(self.ring) < 3 else 1)
        self.marked.add(page)

    def used(self, page):
        self.marked.add(page)

    def removed(self, page):
        self.ring.remove(page)
        self.marked.discard(page)

    def choose(self, may_go, incoming=None):
        for _ in range(2 * len(self.ring)):
            page = self.ring[0]
            self.ring.rotate(-1)
            if not may_go(page):
                continue
            if page not in self.marked:
                self.ring.rotate(1)
                return page
            self.marked.discard(page)
        return None
