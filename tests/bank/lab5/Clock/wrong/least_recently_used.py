"""
wrong: the page that was used longest ago goes
check: clock, clock_pins
phrase: Least recently used
rule: clock.ring
"""


class Clock:
    def __init__(self):
        self.ring = deque()  # the hand is at the left end
        self.marked = set()

    def placed(self, page):
        self.ring.append(page)
        self.marked.add(page)

    def used(self, page):
        self.ring.remove(page)
        self.ring.append(page)

    def removed(self, page):
        self.ring.remove(page)
        self.marked.discard(page)

    def choose(self, may_go, incoming=None):
        return next((page for page in self.ring if may_go(page)), None)
