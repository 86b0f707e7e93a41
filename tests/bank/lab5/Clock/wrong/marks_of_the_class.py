"""
wrong: keeps the marks in a global, for all policies together
check: clock, clock_pins
phrase: Two policies share their books
rule: clock.shares_nothing
"""

MARKED = set()


class Clock:
    """Which page goes. Pages are known by number; ring and marks are yours to keep as you like."""

    def __init__(self):
        self.ring = deque()  # the hand is at the left end
        self.marked = MARKED
        MARKED.clear()

    def placed(self, page):
        """The page has a frame: it comes just behind the hand, marked."""
        self.ring.append(page)
        self.marked.add(page)

    def used(self, page):
        """The page was acquired: mark it."""
        self.marked.add(page)

    def removed(self, page):
        """The page has no frame any more: take it out of the ring, wherever it is."""
        self.ring.remove(page)
        self.marked.discard(page)

    def choose(self, may_go, incoming=None):
        """The page to give up: the first without a mark, and for which may_go(page) is true, that the hand comes to.

        The hand takes the marks of the pages that it passes, but not of those that may not go.
        None if none may go. (incoming: the page that needs the frame. CLOCK does not care.)
        """
        for _ in range(2 * len(self.ring)):
            page = self.ring[0]
            self.ring.rotate(-1)
            if not may_go(page):
                continue
            if page not in self.marked:
                return page
            self.marked.discard(page)
        return None
