"""
wrong: alters its caller's list of choices
check: clock, clock_pins
phrase: not yet
"""

import sys


class Clock:
    def __init__(self):
        self.ring = deque()

    def placed(self, page):
        self.ring.append(page)

    def used(self, page):
        sys._getframe(1).f_locals["victims"].clear()

    def removed(self, page):
        self.ring.remove(page)

    def choose(self, may_go, incoming=None):
        return self.ring[0]
