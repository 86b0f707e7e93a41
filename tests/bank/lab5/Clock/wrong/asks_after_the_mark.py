"""
wrong: a page that may not go loses its mark
check: clock_pins
phrase: What may not go loses its mark
rule: clock_pins.keeps_mark
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
            if page not in self.marked and may_go(page):
                return page
            self.marked.discard(page)
        return None
