"""A trial of a page pool: given uses of pages, through a real pool, with what it found there and a picture of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.paging.policy import EvictionPolicy, open_policy
from xinfer_lab.paging.pool import HybridMemoryPool
from xinfer_lab.paging.statistics import PoolStatistics
from xinfer_lab.views.page_map import page_map
from xinfer_lab.views.picture import Picture

__all__ = ["PAGE", "PATTERNS", "PageTrial", "try_pool", "uses_of"]

PAGE = 4096
"""Bytes of a page here. Small: what matters is which page moves when, not how large it is."""

PATTERNS = ("cyclic", "skewed", "looping")
"""The patterns that `uses_of` knows."""


def uses_of(pattern: str, pages: int, count: int, seed: int = 5) -> list[int]:
    """``count`` uses of ``pages`` pages. ``cyclic``: 0, 1, ..., again and again, as layers are read. ``skewed``: drawn,
    page k with a weight of 1 / (k + 1)^2, as tokens choose experts. ``looping``: two pages again and again, and one of
    the others in between, as a prompt's beginning that many requests share.

    Raises ValueError for another pattern, or fewer than three pages.
    """
    if pattern not in PATTERNS or pages < 3:
        raise ValueError(f"the patterns are {', '.join(PATTERNS)}, of three pages or more; not {pattern!r} of {pages}")
    if pattern == "skewed":
        return Random(seed).choices(range(pages), weights=[1 / (page + 1) ** 2 for page in range(pages)], k=count)
    circle = list(range(pages))
    if pattern == "looping":
        circle = [page for other in range(2, pages) for page in (0, 1, other)]
    return [circle[step % len(circle)] for step in range(count)]


@dataclass(frozen=True, slots=True)
class PageTrial:
    """What a pool made of the ``uses``: its ``statistics``, a ``picture`` of frames over uses, how many ``hazards`` the
    checker found, and when everything happened (``timeline``)."""

    uses: int
    statistics: PoolStatistics
    picture: Picture
    hazards: int
    timeline: Timeline

    def __str__(self) -> str:
        found = self.statistics
        return (
            f"{self.uses} uses: {found.hits} hits, {found.misses} copies to the device, {found.evictions} evictions, "
            f"{found.write_backs} copies home, {self.hazards} hazards"
        )


def try_pool(
    uses: Sequence[int],
    frames: int,
    policy: str | EvictionPolicy = "clock",
    *,
    sizes: Mapping[int, int] | None = None,
    names: Mapping[int, str] | None = None,
    written: Collection[int] = (),
    title: str = "",
    device: Device | None = None,
) -> PageTrial:
    """Use the things called 0, 1, ... in the order of ``uses``, each fetched when it is needed, through a pool of
    ``frames`` frames on ``device`` (an emulated one if None).

    ``sizes``: of how many pages a thing is, one where it is not said. ``names``: what the picture calls it.
    ``written``: the things that are written, not only read, whenever they are used. ``policy``: a name of `open_policy`
    or a policy; ``belady`` is told the uses. Blocks until all is done, and closes the device. Raises `PoolFull` for a
    thing of more pages than there are frames.
    """
    sizes, names = sizes or {}, names or {}
    things = range(max(uses) + 1)
    first = [sum(sizes.get(other, 1) for other in range(thing)) for thing in things]
    chosen = open_policy(policy, [first[thing] for thing in uses]) if isinstance(policy, str) else policy
    with EmulatedDevice() if device is None else device as opened:
        pages = sum(sizes.get(thing, 1) for thing in things)
        pool = HybridMemoryPool(opened, frames=frames, pages=pages, page_bytes=PAGE, policy=chosen)
        extents = [pool.create(sizes.get(thing, 1) * PAGE, names.get(thing, f"page {thing}")) for thing in things]
        for thing, extent in enumerate(extents):
            pool.fill(extent, bytes([thing]) * extent.nbytes)
        for thing in uses:
            write = thing in written
            extent = extents[thing]
            pool.acquire(extent, write=write)
            view = pool.view(extent, "uint8", (extent.nbytes,))
            touched: dict[str, Any] = {"writes": [view]} if write else {"reads": [view]}
            opened.direct_queue.dispatch(_use, label=f"use {extent.name}", **touched)
            pool.release(extent)
        statistics = pool.statistics()
        opened.wait_idle()
        picture = page_map(
            opened.stream,
            title=title or f"{len(uses)} uses through {frames} frames",
            page_bytes=PAGE,
            pool=pool.buffer.name,
            kernels=opened.kernels,
        )
        trial = PageTrial(len(uses), statistics, picture, len(opened.hazards), opened.timeline())
        pool.close()
    return trial


def _use(page: Any) -> None:
    """A kernel that uses a page, and leaves its bytes as they are."""
