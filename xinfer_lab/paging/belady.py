"""Belady's rule evicts the page needed last. It takes knowing the future, and no policy does better."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable

__all__ = ["Belady"]

_NEVER = 2**62


class Belady:
    """Evicts the page whose next use is farthest away (Belady, "A study of replacement algorithms for a virtual-storage
    computer", 1966): the fewest misses possible where pages are fetched when needed.

    ``future``: pages in the order of their uses; `foresee` adds to it, and `expect` says when one page is used next. A
    forward pass reads its layers in order, so here the future is known. A page that is not expected counts as never
    needed again.
    """

    def __init__(self, future: Iterable[int] = ()) -> None:
        self._uses: dict[int, deque[int]] = {}
        self._length = 0
        self._there: set[int] = set()
        self._heap: list[tuple[int, int]] = []  # (-next use, page); entries of older uses are left in it
        self.foresee(future)

    def foresee(self, future: Iterable[int]) -> None:
        """These pages will be used, in this order, one a time from 0 on, after all that was foreseen before."""
        for page in future:
            self.expect(page, self._length)
            self._length += 1

    def expect(self, page: int, time: int) -> None:
        """``page`` will be used at ``time``, after all its uses expected so far.

        Any number that grows will do, as long as all callers of one policy count alike.
        """
        uses = self._uses.setdefault(page, deque())
        uses.append(time)
        if len(uses) == 1:
            self._push(page)

    def next_use(self, page: int) -> int:
        """When the page is used next; very large if no use is expected."""
        uses = self._uses.get(page)
        return uses[0] if uses else _NEVER

    def placed(self, page: int) -> None:
        """The page stays until its next use or longer."""
        self._there.add(page)
        self._push(page)

    def used(self, page: int) -> None:
        """The page's next use has come."""
        if uses := self._uses.get(page):
            uses.popleft()
        self._push(page)

    def removed(self, page: int) -> None:
        """Forget that the page was there."""
        self._there.discard(page)

    def choose(self, may_go: Callable[[int], bool], incoming: int | None = None) -> int | None:
        """The page that is needed last; None rather than one that is needed before ``incoming``."""
        kept, chosen = [], None
        while self._heap:
            entry = heapq.heappop(self._heap)
            when, page = -entry[0], entry[1]
            if page not in self._there or when != self.next_use(page):
                continue
            kept.append(entry)
            if incoming is not None and when <= self.next_use(incoming):
                break
            if may_go(page):
                chosen = page
                break
        for entry in kept:
            heapq.heappush(self._heap, entry)
        return chosen

    def _push(self, page: int) -> None:
        if page in self._there:
            heapq.heappush(self._heap, (-self.next_use(page), page))
