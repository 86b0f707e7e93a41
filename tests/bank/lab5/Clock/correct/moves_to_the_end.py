"""
note: a dict in the order of the ring
"""


class Clock:
    def __init__(self):
        self.marks = {}

    def placed(self, page):
        self.marks[page] = True

    def used(self, page):
        self.marks[page] = True

    def removed(self, page):
        del self.marks[page]

    def _pass_by(self, page, mark):
        del self.marks[page]
        self.marks[page] = mark

    def choose(self, may_go, incoming=None):
        for _ in range(2 * len(self.marks)):
            page, mark = next(iter(self.marks.items()))
            self._pass_by(page, mark and not may_go(page))
            if may_go(page) and not mark:
                return page
