"""
wrong: marks go only when all pages have one
check: clock, clock_pins
phrase: Marks go all at once
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
        for _ in range(2):
            for page in self.ring:
                if may_go(page) and page not in self.marked:
                    self.ring.rotate(-1 - self.ring.index(page))
                    return page
            self.marked.clear()
        return None
