"""`HybridMemoryPool`: more pages than device memory holds; those in use are there.

Streaming moves layers in a fixed order. What is not in order (experts, a long cache) needs pages, fetched on demand or
on a guess. The pool joins four parts that know nothing of each other: the table (bookkeeping), the policy (who
leaves), the placement (which frames) and the transfers (copies and waits).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.records import Source, View
from xinfer_lab.device.rollback import all_or_nothing
from xinfer_lab.device.stream_rules import BUFFER_ALIGNMENT
from xinfer_lab.paging.errors import HostPoolFull, PageError, PoolFull
from xinfer_lab.paging.extent import PAGE_BYTES, Extent, PageState
from xinfer_lab.paging.placement import MOST_AT_ONCE, Placement, batches
from xinfer_lab.paging.policy import EvictionPolicy, open_policy
from xinfer_lab.paging.statistics import PoolStatistics
from xinfer_lab.paging.table import PageEntry, PageTable
from xinfer_lab.paging.transfers import Transfers

__all__ = ["HybridMemoryPool"]


class HybridMemoryPool:
    """``pages`` pages of pinned host memory and ``frames`` frames of device memory, each of ``page_bytes`` bytes, both
    allocated once. Every page has its home in the host pool; those in use are in frames.

    The direct queue may use pages between `acquire` and `release`; `prefetch` starts a copy ahead of
    that. ``policy``: a name of `open_policy`, or a policy. Nothing blocks the host but `fill`, `read`, `settle` and
    `close`, and where an extent is there already, nothing is submitted at all. Raises `OutOfDeviceMemory` when the
    frames do not fit the device's budget.
    """

    def __init__(
        self,
        device: Device,
        *,
        frames: int,
        pages: int,
        page_bytes: int = PAGE_BYTES,
        policy: str | EvictionPolicy = "clock",
        name: str = "pool",
    ) -> None:
        if frames < 1 or pages < 1:
            raise ValueError(f"a pool has at least one frame and one page, not {frames} and {pages}")
        if page_bytes < 1 or page_bytes % BUFFER_ALIGNMENT:
            raise ValueError(f"a page has a multiple of {BUFFER_ALIGNMENT} bytes, not {page_bytes}")
        self.device, self.page_bytes = device, page_bytes
        self.policy = open_policy(policy) if isinstance(policy, str) else policy
        self.table = PageTable(frames)
        self._homes = bytearray(pages)  # 1 where a page is taken
        self._counts: Counter[str] = Counter()
        with all_or_nothing(device):
            self.buffer = device.create_buffer(frames * page_bytes, name)
            self._heap = device.create_host_heap(pages * page_bytes, f"{name}.host")
        self._transfers = Transfers(device, self.buffer, self._heap, page_bytes, name)
        self._placement = Placement(self.table, self.policy, self._evict)
        self._closed = False

    # What is in the pool

    def create(self, nbytes: int, name: str | None = None) -> Extent:
        """An extent of as many neighbouring pages as ``nbytes`` bytes take; empty, and not on the device.

        Raises `HostPoolFull`, and `PoolFull` for more pages than there are frames.
        """
        if nbytes < 1:
            raise ValueError(f"an extent has at least one byte, not {nbytes}")
        pages = -(-nbytes // self.page_bytes)
        if pages > self.table.frames:
            raise PoolFull(
                f"{format_bytes(nbytes)} take {pages} neighbouring frames, and this pool has {self.table.frames} of "
                f"{format_bytes(self.page_bytes)}: give it more frames"
            )
        first = self._homes.find(bytes(pages))
        if first < 0:
            raise HostPoolFull(
                f"{format_bytes(nbytes)} take {pages} neighbouring pages, and {self._homes.count(0)} of the "
                f"{len(self._homes)} pages of this pool are free, not as many side by side: give it more pages"
            )
        self._homes[first : first + pages] = bytes([1]) * pages
        return self.table.add(Extent(name or self.device.fresh_name("page"), first, pages, nbytes)).extent

    def fill(self, extent: Extent, source: str | Source | torch.Tensor | bytes, offset: int = 0) -> None:
        """Write ``source`` into the extent at home, from byte ``offset`` on. Blocks the host while a copy uses it.

        Raises `PageError` for an extent on the device: the copy there would not change.
        """
        entry = self.table.entry(extent)
        if entry.frame is not None:
            raise PageError(f"{extent.name!r} is on the device, where this would change nothing: evict it first")
        self.settle(extent)
        if isinstance(source, str):
            source = self.device.sources.whole(source)
        elif not isinstance(source, Source):
            source = self.device.sources.put(self.device.fresh_name("input"), source)
        if offset < 0 or offset + source.size > extent.nbytes:
            raise PageError(
                f"{source.size} bytes at {offset} do not lie in {extent.name!r}, which has {extent.nbytes} bytes"
            )
        self._heap.write(extent.first * self.page_bytes + offset, source)
        entry.filled = True

    def read(self, extent: Extent) -> torch.Tensor:
        """The extent's bytes, 1-D uint8. Blocks the host; a dirty extent is written back first, and stays where it is.

        Raises `PageError` while it is acquired, and for an extent without contents.
        """
        entry = self._idle(extent, "read by the host")
        if not entry.filled:
            raise PageError(f"{extent.name!r} has no contents yet: fill it, or acquire it to write")
        self.write_back(extent)
        self.settle(extent)
        return self._heap.read("uint8", (extent.nbytes,), extent.first * self.page_bytes)

    def destroy(self, extent: Extent) -> None:
        """Drop the extent's contents; its pages and frames are free. Nothing is written back."""
        entry = self._idle(extent, "destroyed")
        if entry.frame is not None:
            self._drop(entry)
        self.table.remove(extent)
        self._homes[extent.first : extent.first + extent.pages] = bytes(extent.pages)

    # Using it

    def prefetch(self, *extents: Extent) -> bool:
        """Start copies of ``extents`` that are not on the device, in this order, until no frame can be had without
        evicting one of them, or what is acquired or on its way. Returns whether all of them are there or on their way
        now.

        Those that are neighbours at home and follow one another are put side by side where there is room, and what is
        neighbours in both memories is moved by one copy, of up to 64 extents.
        """
        asked = {extent.first: self.table.entry(extent) for extent in extents}
        missing = [entry for entry in asked.values() if entry.frame is None and entry.filled]
        started = self._bring(missing, asked, ahead=True)
        self._counts["prefetches"] += started
        self._counts["declined"] += started < len(missing)
        return started == len(missing)

    def acquire(self, *extents: Extent, write: bool = False) -> None:
        """From here on the direct queue may use these extents, until `release`; with ``write`` it may write them too.

        What is missing is fetched as `prefetch` does it, and the direct queue waits for it. An extent without contents
        is not fetched, and may only be acquired to write. All or none are acquired. Raises `PoolFull` if no frames can
        be freed, `PageError` for an extent without contents.
        """
        entries = [self.table.entry(extent) for extent in extents]
        if not write and (empty := next((entry for entry in entries if not entry.filled), None)) is not None:
            raise PageError(
                f"{empty.extent.name!r} has no contents yet: fill it, or acquire it with write=True and write all of it"
            )
        found = [_found(entry) for entry in entries]
        held = [entry for entry in entries if entry.frame is not None]
        absent = [entry for entry in entries if entry.frame is None]
        # What is there is held first, so that it does not leave for what is not.
        for entry in held:
            entry.pins += 1
        try:
            asked = {entry.extent.first: entry for entry in entries}
            self._bring([entry for entry in asked.values() if entry.frame is None], asked, ahead=False)
            for entry in absent:
                entry.pins += 1
                held.append(entry)
            if write and entries:
                self._transfers.before_writing(entries)
            elif any(entry.state is not PageState.IN_DEVICE for entry in entries):
                self._transfers.before_reading(entries)
        except BaseException:
            for entry in held:
                entry.pins -= 1
            raise
        for entry, what in zip(entries, found, strict=True):
            self._counts[what] += 1
            self.policy.used(entry.extent.first)
            entry.state = PageState.IN_DEVICE
            entry.filled, entry.dirty = True, entry.dirty or write

    def release(self, *extents: Extent) -> None:
        """The direct queue has been given its last command on these extents, for now. Raises `PageError` for one that
        is not acquired.
        """
        entries = [self._held(extent) for extent in extents]
        if entries:
            self._transfers.touched(entries)
        for entry in entries:
            entry.pins -= 1

    def write_back(self, *extents: Extent) -> None:
        """Start copying home those of ``extents`` that are dirty; they stay, and may be read meanwhile. One copy moves
        what is neighbours in both memories.
        """
        self._save([self._idle(extent, "written back") for extent in extents])

    def evict(self, *extents: Extent) -> None:
        """Give up the frames of ``extents``; dirty ones are written back first. Others are left alone."""
        entries = [self._idle(extent, "evicted") for extent in dict.fromkeys(extents)]
        self._evict([entry for entry in entries if entry.frame is not None])

    def settle(self, extent: Extent) -> None:
        """Block the host until nothing copies from or into the home of ``extent``."""
        entry = self.table.entry(extent)
        self._transfers.host_waits(extent)
        if entry.frame is None:
            entry.state = PageState.IN_HOST

    def view(self, extent: Extent, dtype: str | torch.dtype, shape: tuple[int, ...], offset: int = 0) -> View:
        """The extent's bytes on the device from ``offset`` on as a tensor, until it is released. Raises `PageError` if
        it is not acquired.
        """
        entry = self._held(extent)
        assert entry.frame is not None
        view = self.buffer.view(dtype, shape, entry.frame * self.page_bytes + offset)
        if offset < 0 or offset + view.nbytes > extent.nbytes:
            raise PageError(f"{view.nbytes} bytes at {offset} do not lie in {extent.name!r} of {extent.nbytes} bytes")
        return view

    def holds(self, extent: Extent) -> bool:
        """Whether the extent is on the device, or on its way there."""
        return self.table.entry(extent).frame is not None

    def state(self, extent: Extent) -> PageState:
        """Where the extent is, as far as the host knows without waiting."""
        return self.table.entry(extent).state

    def statistics(self) -> PoolStatistics:
        """A snapshot."""
        entries = list(self.table)
        return PoolStatistics(
            **self._counts,
            frames=self.table.frames,
            free_frames=self.table.free,
            pinned_frames=sum(len(entry.frames) for entry in entries if entry.pins),
            dirty_frames=sum(len(entry.frames) for entry in entries if entry.dirty),
        )

    def close(self) -> None:
        """Block the host until nothing is in flight, and give all memory back. May be called again."""
        if not self._closed:
            self._closed = True
            self._transfers.drain()
            self.buffer.free()
            self._heap.free()

    # How it is done

    def _idle(self, extent: Extent, verb: str) -> PageEntry:
        entry = self.table.entry(extent)
        if entry.pins:
            raise PageError(f"{extent.name!r} is acquired and cannot be {verb}: release it first")
        return entry

    def _held(self, extent: Extent) -> PageEntry:
        entry = self.table.entry(extent)
        if not entry.pins:
            raise PageError(f"{extent.name!r} is not acquired ({entry.state.value}): acquire it first, release it once")
        return entry

    def _bring(self, entries: Sequence[PageEntry], keep: Collection[int], *, ahead: bool) -> int:
        """Give ``entries``, which have none, frames, and start the copies of those with contents. Returns how many of
        them, from the first on, found room: all, unless they are fetched ``ahead`` (see `Placement`, also on ``keep``).
        """
        count, copied = 0, False
        for place in range(0, len(entries), MOST_AT_ONCE):
            several = entries[place : place + MOST_AT_ONCE]
            found, some = self._bring_together(several, keep, ahead)
            count, copied = count + found, copied or some
            if found < len(several):
                break
        if copied:
            self._transfers.sent()
        return count

    def _bring_together(self, entries: Sequence[PageEntry], keep: Collection[int], ahead: bool) -> tuple[int, bool]:
        """How many of ``entries`` found room, and whether anything was copied."""
        bound: dict[int, PageEntry] = {}
        try:
            for batch in batches(entries):
                frames = self._placement.make_room(batch, keep, ahead=ahead)
                for entry, frame in zip(batch, frames, strict=False):
                    self.table.bind(entry, frame)
                    bound[entry.extent.first] = entry
                if len(frames) < len(batch):
                    break
            count, copies = len(bound), list(self._transfers.runs(e for e in bound.values() if e.filled))
            for run in copies:
                self._transfers.bring(run)
                self._stay(run, bound)
                self._counts["bytes_to_device"] += sum(entry.extent.nbytes for entry in run)
            self._stay(list(bound.values()), bound)
        except BaseException:
            for entry in bound.values():
                self.table.unbind(entry)
            raise
        return count, bool(copies)

    def _stay(self, entries: Iterable[PageEntry], bound: dict[int, PageEntry]) -> None:
        """The frames of ``entries`` are theirs, whatever happens now to others that are ``bound``."""
        for entry in entries:
            del bound[entry.extent.first]
            entry.state = PageState.MIGRATING
            self.policy.placed(entry.extent.first)

    def _evict(self, entries: Sequence[PageEntry]) -> None:
        saving = {entry.extent for entry in entries if entry.dirty}
        self._save(entries)
        for entry in entries:
            self._drop(entry)
            entry.state = PageState.MIGRATING if entry.extent in saving else PageState.IN_HOST
            self._counts["evictions"] += 1

    def _save(self, entries: Iterable[PageEntry]) -> None:
        """Start copying those of ``entries`` home that are dirty."""
        dirty = sorted((entry for entry in entries if entry.dirty), key=lambda entry: entry.extent.first)
        for run in self._transfers.runs(dirty):
            self._transfers.save(run)
            for entry in run:
                entry.dirty = False
                self._counts["write_backs"] += 1
                self._counts["bytes_to_host"] += entry.extent.nbytes
        if dirty:
            self._transfers.gone()

    def _drop(self, entry: PageEntry) -> None:
        self.table.unbind(entry)
        entry.dirty = False
        self.policy.removed(entry.extent.first)


def _found(entry: PageEntry) -> str:
    """How an acquisition finds ``entry``, as `PoolStatistics` counts it."""
    if not entry.filled:
        return "fresh"
    if entry.frame is None:
        return "misses"
    return "hits" if entry.state is PageState.IN_DEVICE else "late"
