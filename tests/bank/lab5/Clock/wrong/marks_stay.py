"""
wrong: the hand takes no mark away
check: clock, clock_pins, gate
phrase: No page is ever found
rule: clock.takes_marks
"""


class Clock:
    def __init__(self):
        self.ring = deque()  # the hand is at the left end
        self.marked = set()

    def placed(self, page):
        self.ring.append(page)
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
                return page
        return None
