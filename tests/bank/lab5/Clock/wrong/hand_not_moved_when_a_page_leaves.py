"""
wrong: the hand is a place, and stays when a page before it leaves
check: clock, clock_pins
phrase: It gives up another page
"""


class Clock:
    def __init__(self):
        self.dial, self.marked, self.hand = [], set(), 0

    def placed(self, page):
        self.dial.insert(self.hand, page)
        self.hand += 1
        self.marked.add(page)

    def used(self, page):
        self.marked.add(page)

    def removed(self, page):
        self.dial.remove(page)
        self.marked.discard(page)

    def choose(self, may_go, incoming=None):
        for _ in range(2 * len(self.dial)):
            page = self.dial[self.hand % len(self.dial)]
            self.hand = self.hand % len(self.dial) + 1
            if may_go(page) and page not in self.marked:
                return page
            if may_go(page):
                self.marked.discard(page)
        return None
