"""`SinglePages`: a `PartsPool` for those who ask for extents, each of which is one page here."""

from __future__ import annotations

from collections import Counter

import torch

from xinfer_lab.device.records import Source, View
from xinfer_lab.labs.lab5.given.parts_pool import PartsPool
from xinfer_lab.paging.errors import HostPoolFull, PageError
from xinfer_lab.paging.extent import Extent, PageState
from xinfer_lab.paging.statistics import PoolStatistics

__all__ = ["SinglePages"]


class SinglePages:
    """``pool``'s pages as extents (see `ExtentPool`); none may be larger than a page.

    A page that was never filled is fetched like any other: its bytes at home mean nothing until somebody writes it.
    Nothing is written back before its page is evicted.
    """

    def __init__(self, pool: PartsPool) -> None:
        self.device, self.page_bytes, self.policy, self.buffer = pool.device, pool.page_bytes, pool.policy, pool.buffer
        self.table = pool
        self._pool = pool
        self._free = list(range(pool.pages))
        self._frames: dict[int, int] = {}
        self._counts: Counter[str] = Counter()

    def create(self, nbytes: int, name: str | None = None) -> Extent:
        """A page. Raises `HostPoolFull` where all are taken, or one is too small."""
        if not 0 < nbytes <= self.page_bytes or not self._free:
            raise HostPoolFull(
                f"{name or 'an extent'} of {nbytes} bytes needs one of {len(self._free)} free pages of "
                f"{self.page_bytes} bytes: give the pool more or larger pages"
            )
        page = self._free.pop(0)
        return Extent(name or f"page {page}", page, 1, nbytes)

    def fill(self, extent: Extent, source: str | Source | torch.Tensor | bytes, offset: int = 0) -> None:
        """Write a named source into the page at home, from byte ``offset`` on. It must not be on the device."""
        if not isinstance(source, (str, Source)):
            raise TypeError("a page is filled from a named source, such as a weight")
        self._pool.fill(extent.first, source, offset)

    def prefetch(self, *extents: Extent) -> bool:
        """The pool's own, page by page, until it declines one."""
        for extent in extents:
            there = self.holds(extent)
            if not self._pool.prefetch(extent.first):
                self._counts["declined"] += 1
                return False
            if not there:
                self._counts.update(prefetches=1, bytes_to_device=self.page_bytes)
        return True

    def acquire(self, *extents: Extent, write: bool = False) -> None:
        """The pool's own, page by page."""
        for extent in extents:
            found = {PageState.IN_DEVICE: "hits", PageState.MIGRATING: "late"}.get(self.state(extent), "misses")
            self._frames[extent.first] = self._pool.acquire(extent.first, write)
            self._counts[found] += 1
            self._counts["bytes_to_device"] += self.page_bytes * (found == "misses")

    def release(self, *extents: Extent) -> None:
        """The pool's own, page by page."""
        for extent in extents:
            self._pool.release(extent.first)

    def write_back(self, *extents: Extent) -> None:
        """Nothing: a page goes home when it is evicted."""

    def view(self, extent: Extent, dtype: str | torch.dtype, shape: tuple[int, ...], offset: int = 0) -> View:
        """The page's bytes on the device as a tensor, until it is released."""
        if extent.first not in self._frames:
            raise PageError(f"{extent.name!r} is not acquired: acquire it first")
        return self.buffer.view(dtype, shape, self._frames[extent.first] * self.page_bytes + offset)

    def holds(self, extent: Extent) -> bool:
        """Whether the page is on the device, or on its way there."""
        return self._pool.table.frame_of(extent.first) is not None

    def state(self, extent: Extent) -> PageState:
        """The table's."""
        return PageState(self._pool.table.state(extent.first))

    def destroy(self, extent: Extent) -> None:
        """The page's contents are not wanted any more; nothing is written back."""
        table, page = self._pool.table, extent.first
        if table.frame_of(page) is not None:
            table.mark_clean(page)
            self._pool.policy.removed(page)
            table.unbind(page)
        self._free.append(page)

    def statistics(self) -> PoolStatistics:
        """What was asked so far, and how it was found."""
        return PoolStatistics(**self._counts, frames=self._pool.frames)

    def close(self) -> None:
        """Block the host until nothing is in flight, and give all memory back."""
        self._pool.close()
