"""LRU evicts the page that was used longest ago."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

__all__ = ["LeastRecentlyUsed"]


class LeastRecentlyUsed:
    """Pages in the order of their last use. On a cyclic scan it always evicts what is needed next."""

    def __init__(self) -> None:
        self._order: OrderedDict[int, None] = OrderedDict()

    def placed(self, page: int) -> None:
        """Coming in counts as a use, so a page fetched ahead is not the first to go."""
        self._order[page] = None

    def used(self, page: int) -> None:
        """The page is the most recent one."""
        self._order.move_to_end(page)

    def removed(self, page: int) -> None:
        """Forget the page."""
        del self._order[page]

    def choose(self, may_go: Callable[[int], bool], incoming: int | None = None) -> int | None:
        """The least recent page that may go."""
        return next((page for page in self._order if may_go(page)), None)
