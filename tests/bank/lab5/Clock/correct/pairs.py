"""
note: a mark beside each page, and a hand that is a number
"""


class Clock:
    def __init__(self):
        self.dial, self.hand = [], 0

    def placed(self, page):
        self.dial.insert(self.hand, [page, True])
        self.hand += 1

    def used(self, page):
        for entry in self.dial:
            if entry[0] == page:
                entry[1] = True

    def removed(self, page):
        place = next(place for place, entry in enumerate(self.dial) if entry[0] == page)
        del self.dial[place]
        if place < self.hand:
            self.hand -= 1

    def choose(self, may_go, incoming=None):
        looked = 0
        while looked < 2 * len(self.dial):
            self.hand %= len(self.dial)
            entry = self.dial[self.hand]
            self.hand += 1
            looked += 1
            if may_go(entry[0]) and not entry[1]:
                return entry[0]
            if may_go(entry[0]):
                entry[1] = False
        return None
