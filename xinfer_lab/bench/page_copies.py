"""Measures pages over the link: in a row, on demand, and both ways at once, beside single large copies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from xinfer_lab.bench.rows import BOTH_WAYS, COPIES, IN_A_ROW, Row, Timing
from xinfer_lab.device.device import Device
from xinfer_lab.paging.extent import Extent
from xinfer_lab.paging.pool import HybridMemoryPool

__all__ = ["GROUP", "LARGE", "LARGE_BOTH_WAYS", "NumberedPages", "PageCopies", "copy_rows"]

LARGE, LARGE_BOTH_WAYS = "one large copy", "one large copy each way at once"
"""Rows: the link as the device's own queues see it."""

GROUP = 32
"""Pages of one call where they come in groups."""


class NumberedPages:
    """Sources ``page[0]``, ``page[1]``, ... of ``size`` bytes each, no two of them in a row alike."""

    def __init__(self, count: int, size: int) -> None:
        self._count, self._size = count, size
        self._base = (torch.arange(size, device="cpu") % 251).to(torch.uint8)

    def nbytes(self, name: str) -> int | None:
        """Bytes of the page called ``name``; None if there is none."""
        return None if self._number(name) is None else self._size

    def _number(self, name: str) -> int | None:
        digits = name.removeprefix("page[").removesuffix("]")
        return int(digits) if name == f"page[{digits}]" and digits.isdecimal() and int(digits) < self._count else None

    def bytes(self, name: str) -> torch.Tensor:
        """Its bytes."""
        return self.content(self._number(name) or 0)

    def content(self, number: int) -> torch.Tensor:
        """The bytes of page ``number``: 1-D uint8."""
        return self._base + number % 239


@dataclass(frozen=True, slots=True)
class PageCopies:
    """``frames`` frames and twice as many pages of ``page_bytes`` bytes, each measured ``rounds`` times."""

    frames: int
    page_bytes: int
    rounds: int = 5


@dataclass(frozen=True, slots=True)
class Work:
    """``do`` is timed, and returns the bytes that it moves; ``before`` it, something may be made ready."""

    do: Callable[[], int]
    before: Callable[[], object] = lambda: None


def copy_rows(
    open_device: Callable[[], Device],
    shape: PageCopies,
    link: Callable[[], float],
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Row]:
    """A row for each kind of copies, each round from idle to idle, on a device of its own. ``link`` says what the link
    makes now in one direction, in bytes a second; copies in both directions count the bytes of both. Of pages the bytes
    that came are compared with those at home."""
    size = shape.frames * shape.page_bytes
    with open_device() as device:
        # Made before anything is measured.
        _ = device.write_back_queue

        def row(name: str, work: Work, difference: Callable[[], float] | None = None) -> Row:
            seconds, moved = _rounds(device, work, shape.rounds, clock)
            found, rate = None if difference is None else difference(), link()
            return Row(
                name=name, workload=COPIES, timing=Timing.of(seconds), moved=moved, difference=found, link=rate,
                bound=moved / rate,
            )  # fmt: skip

        yield from _large(device, size, row)
        pool, extents, pages = _open_pool(device, shape)

        def difference() -> float:
            return _difference(device, pool, extents, pages)

        for name, work in _works(pool, extents, shape).items():
            yield row(name, work, difference)
        pool.close()
        device.sources.unmount(pages)


def _rounds(device: Device, work: Work, rounds: int, clock: Callable[[], float]) -> tuple[list[float], int]:
    """Seconds of each round but a first one, and the bytes that one moves."""
    seconds, moved = [], 0
    for number in range(rounds + 1):
        work.before()
        device.wait_idle()
        start = clock()
        moved = work.do()
        device.wait_idle()
        if number:
            seconds.append(clock() - start)
    return seconds, moved


def _large(device: Device, size: int, row: Callable[[str, Work], Row]) -> Iterator[Row]:
    up, down = device.create_host_heap(size), device.create_host_heap(size)
    there, back = device.create_buffer(size), device.create_buffer(size)

    def one() -> int:
        device.copy_queue.copy(there, up)
        return size

    def both() -> int:
        device.copy_queue.copy(there, up)
        device.write_back_queue.copy(down, back)
        return 2 * size

    yield row(LARGE, Work(one))
    yield row(LARGE_BOTH_WAYS, Work(both))
    for buffer in (up, down, there, back):
        buffer.free()


def _open_pool(device: Device, shape: PageCopies) -> tuple[HybridMemoryPool, list[Extent], NumberedPages]:
    count = 2 * shape.frames
    pages = NumberedPages(count, shape.page_bytes)
    device.sources.mount(pages)
    pool = HybridMemoryPool(
        device, frames=shape.frames, pages=count, page_bytes=shape.page_bytes, policy="lru",
        name=device.fresh_name("pages"),
    )  # fmt: skip
    extents = [pool.create(shape.page_bytes, f"page {number}") for number in range(count)]
    for number, extent in enumerate(extents):
        pool.fill(extent, f"page[{number}]")
    return pool, extents, pages


def _works(pool: HybridMemoryPool, extents: Sequence[Extent], shape: PageCopies) -> dict[str, Work]:
    """What is done in a round, by the name of its row."""
    half, size = extents[: shape.frames], shape.page_bytes
    groups = [extents[place : place + GROUP] for place in range(0, len(extents), GROUP)]

    def evict() -> None:
        pool.evict(*extents)

    def dirty() -> None:
        pool.acquire(*half, write=True)
        pool.release(*half)

    def fetched(*calls: Sequence[Extent]) -> Work:
        def do() -> int:
            for call in calls:
                pool.prefetch(*call)
            return len(half) * size

        return Work(do, evict)

    def scan(calls: Sequence[Sequence[Extent]], *, write: bool) -> Work:
        # Over twice as many pages as there are frames: LRU evicts each before it is used again.
        def do() -> int:
            for call in calls:
                pool.acquire(*call, write=write)
                pool.release(*call)
            return len(extents) * size * (2 if write else 1)

        return Work(do)

    def written_back() -> int:
        pool.write_back(*half)
        return len(half) * size

    singles = [[extent] for extent in extents]
    return {
        IN_A_ROW: fetched(half),
        f"pages in a row, {GROUP} a call": fetched(*(half[p : p + GROUP] for p in range(0, len(half), GROUP))),
        "pages in a row, no two neighbours": fetched([*half[0::2], *half[1::2]]),
        "pages on demand, one by one": scan(singles, write=False),
        f"pages on demand, {GROUP} at a time": scan(groups, write=False),
        BOTH_WAYS: scan(groups, write=True),
        "pages both ways, one by one": scan(singles, write=True),
        "pages written back in a row": Work(written_back, dirty),
    }


def _difference(device: Device, pool: HybridMemoryPool, extents: Sequence[Extent], pages: NumberedPages) -> float:
    """The largest difference between a byte of a page that is on the device now and what was at home when all began."""
    there = [(number, extent) for number, extent in enumerate(extents) if pool.holds(extent)]
    heap = device.create_readback_heap(GROUP * pool.page_bytes)
    fence = device.create_fence()
    worst = 0.0
    for value, place in enumerate(range(0, len(there), GROUP), 1):
        group = there[place : place + GROUP]
        pool.acquire(*(extent for _, extent in group))
        for offset, (_, extent) in enumerate(group):
            view = pool.view(extent, "uint8", (extent.nbytes,))
            device.direct_queue.copy(heap.span(offset * pool.page_bytes, extent.nbytes), view)
        pool.release(*(extent for _, extent in group))
        device.direct_queue.signal(fence, value)
        fence.wait(value)
        for offset, (number, extent) in enumerate(group):
            seen = heap.read("uint8", (extent.nbytes,), offset * pool.page_bytes)
            if device.computes and not torch.equal(seen, pages.content(number)):
                worst = max(worst, float((seen.short() - pages.content(number).short()).abs().max()))
    heap.free()
    return worst
