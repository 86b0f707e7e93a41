"""
note: each page knows the one behind it
"""


class Clock:
    def __init__(self):
        self.behind, self.before, self.marks, self.hand = {}, {}, {}, None

    def placed(self, page):
        self.marks[page] = True
        if self.hand is None:
            self.hand = self.behind[page] = self.before[page] = page
            return
        last = self.before[self.hand]
        self.behind[last], self.before[page] = page, last
        self.behind[page], self.before[self.hand] = self.hand, page

    def used(self, page):
        self.marks[page] = True

    def removed(self, page):
        behind, before = self.behind.pop(page), self.before.pop(page)
        del self.marks[page]
        if not self.marks:
            self.hand = None
            return
        self.behind[before], self.before[behind] = behind, before
        if self.hand == page:
            self.hand = behind

    def choose(self, may_go, incoming=None):
        for _ in range(2 * len(self.marks)):
            page, self.hand = self.hand, self.behind[self.hand]
            if may_go(page):
                if not self.marks[page]:
                    return page
                self.marks[page] = False
        return None
