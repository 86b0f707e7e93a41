"""
wrong: each use gives one more chance
check: clock, clock_pins
phrase: It gives up another page
"""


class Clock:
    def __init__(self):
        self.ring, self.chances = deque(), {}

    def placed(self, page):
        self.ring.append(page)
        self.chances[page] = 1

    def used(self, page):
        self.chances[page] += 1

    def removed(self, page):
        self.ring.remove(page)
        del self.chances[page]

    def choose(self, may_go, incoming=None):
        if not any(map(may_go, self.ring)):
            return None
        while True:
            page = self.ring[0]
            self.ring.rotate(-1)
            if not may_go(page):
                continue
            if not self.chances[page]:
                return page
            self.chances[page] -= 1
