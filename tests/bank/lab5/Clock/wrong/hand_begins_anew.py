"""
wrong: each search begins at the page that came first
check: clock, clock_pins
phrase: The hand begins anew
rule: clock.hand_stays
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
        for page in list(self.ring) * 2:
            if not may_go(page):
                continue
            if page not in self.marked:
                return page
            self.marked.discard(page)
        return None
