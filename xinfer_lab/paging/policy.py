"""`EvictionPolicy`: which page leaves when a frame is needed. One protocol; a policy is a few lines.

A policy knows pages by a number. It is told what happens, and asked for a victim. Whether a page may go at all (it is
not acquired, not on its way) is for the pool to say, so that no policy can break a pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

__all__ = ["POLICIES", "EvictionPolicy", "Foreseeing", "open_policy"]

POLICIES = ("clock", "lru", "belady")
"""The names that `open_policy` knows."""


class EvictionPolicy(Protocol):
    """Chooses victims. Every call is made by the host at the moment of its submission; nothing here waits."""

    def placed(self, page: int) -> None:
        """``page`` was given a frame."""
        ...

    def used(self, page: int) -> None:
        """``page`` was acquired."""
        ...

    def removed(self, page: int) -> None:
        """``page`` has no frame any more."""
        ...

    def choose(self, may_go: Callable[[int], bool], incoming: int | None = None) -> int | None:
        """The page to evict, one for which ``may_go(page)`` is true; None if there is none.

        ``incoming``: the page that it makes room for ahead of time, for which a policy may refuse to give up a page
        that is needed sooner; None for one that is needed now.
        """
        ...


@runtime_checkable
class Foreseeing(Protocol):
    """A policy that goes by the future, and must be told it."""

    def expect(self, page: int, time: int) -> None:
        """``page`` will be used at ``time``; see `Belady`."""
        ...


def open_policy(name: str, future: Iterable[int] = ()) -> EvictionPolicy:
    """The policy called ``name``. ``future``: the pages in the order of their uses, for ``belady`` alone."""
    from xinfer_lab.paging.belady import Belady
    from xinfer_lab.paging.clock_policy import Clock
    from xinfer_lab.paging.lru import LeastRecentlyUsed

    if name == "clock":
        return Clock()
    if name == "lru":
        return LeastRecentlyUsed()
    if name == "belady":
        return Belady(future)
    raise ValueError(f"there is no eviction policy {name!r}; choose one of {', '.join(POLICIES)}")
