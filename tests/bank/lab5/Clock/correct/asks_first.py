"""
note: looks whether anybody may go, then turns
"""


def anybody(pages, may_go):
    return any(may_go(page) for page in pages)


class Clock:
    def __init__(self):
        self.ring, self.second_chance = [], {}

    def placed(self, page):
        self.ring.append(page)
        self.second_chance[page] = 1

    def used(self, page):
        self.second_chance[page] = 1

    def removed(self, page):
        self.ring = [other for other in self.ring if other != page]
        self.second_chance.pop(page)

    def choose(self, may_go, incoming=None):
        if not anybody(self.ring, may_go):
            return None
        while not may_go(self.ring[0]) or self.second_chance[self.ring[0]]:
            page = self.ring.pop(0)
            if may_go(page):
                self.second_chance[page] = 0
            self.ring.append(page)
        return self.ring[0]
