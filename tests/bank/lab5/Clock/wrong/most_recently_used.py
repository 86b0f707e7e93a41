"""
wrong: the page that was used last goes
check: clock, clock_pins
phrase: Most recently used
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
        return next((page for page in reversed(self.ring) if may_go(page)), None)
