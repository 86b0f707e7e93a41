"""CLOCK gives a second chance to every page that was used since the hand came by."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

__all__ = ["Clock"]


class Clock:
    """Pages in a ring, and a hand. Where the hand finds a marked page, it clears the mark and moves on; the first page
    without a mark goes.

    (Corbato, "A Paging Experiment with the Multics System", 1968.) A page that may not go keeps its mark.
    """

    def __init__(self) -> None:
        self._ring: deque[int] = deque()  # the hand points at the left end
        self._marked: set[int] = set()

    def placed(self, page: int) -> None:
        """The page comes just behind the hand, marked: the hand reaches it last."""
        self._ring.append(page)
        self._marked.add(page)

    def used(self, page: int) -> None:
        """Mark the page."""
        self._marked.add(page)

    def removed(self, page: int) -> None:
        """Take the page out of the ring."""
        self._ring.remove(page)
        self._marked.discard(page)

    def choose(self, may_go: Callable[[int], bool], incoming: int | None = None) -> int | None:
        """The first page without a mark that the hand reaches, within two rounds."""
        for _ in range(2 * len(self._ring)):
            page = self._ring[0]
            self._ring.rotate(-1)
            if not may_go(page):
                continue
            if page not in self._marked:
                return page
            self._marked.discard(page)
        return None
