"""Which page leaves: a second chance for every page that was used since the hand came by."""

from collections.abc import Callable

__all__ = ["Clock"]


class Clock:
    """See Lab 5."""

    def __init__(self) -> None:
        self._ring: list[int] = []
        self._marked: set[int] = set()
        self._hand = 0

    def placed(self, page: int) -> None:
        """``page`` comes just behind the hand, marked."""
        self._ring.insert(self._hand, page)
        self._hand += 1
        self._marked.add(page)

    def used(self, page: int) -> None:
        """Mark ``page``."""
        self._marked.add(page)

    def removed(self, page: int) -> None:
        """``page`` leaves the ring."""
        place = self._ring.index(page)
        self._ring.remove(page)
        self._marked.discard(page)
        if place < self._hand:
            self._hand -= 1

    def choose(self, may_go: Callable[[int], bool], incoming: int | None = None) -> int | None:
        """The first page without a mark that may go."""
        for _ in range(2 * len(self._ring)):
            page = self._ring[self._hand % len(self._ring)]
            self._hand = self._hand % len(self._ring) + 1
            if may_go(page):
                if page not in self._marked:
                    return page
                self._marked.remove(page)
        return None
