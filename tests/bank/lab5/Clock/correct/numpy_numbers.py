"""
note: pages in an array, so that its choices are numbers of NumPy
"""

import numpy as np


class Clock:
    def __init__(self):
        self.ring, self.marks = np.array([], dtype=np.int64), np.array([], dtype=bool)

    def placed(self, page):
        self.ring, self.marks = np.append(self.ring, page), np.append(self.marks, True)

    def used(self, page):
        self.marks[self.ring == page] = True

    def removed(self, page):
        stays = self.ring != page
        self.ring, self.marks = self.ring[stays], self.marks[stays]

    def choose(self, may_go, incoming=None):
        for _ in range(2 * len(self.ring)):
            page, mark = self.ring[0], self.marks[0]
            may = may_go(page)
            self.ring, self.marks = np.roll(self.ring, -1), np.roll(self.marks, -1)
            if may and not mark:
                return page
            self.marks[-1] = mark and not may
        return None
