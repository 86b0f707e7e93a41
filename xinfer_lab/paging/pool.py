"""`HybridMemoryPool`: more pages than device memory holds, of which those that are needed are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.records import Source, View
from xinfer_lab.device.rollback import all_or_nothing
from xinfer_lab.device.rules import BUFFER_ALIGNMENT
from xinfer_lab.paging.errors import HostPoolFull, PageError, PoolFull
from xinfer_lab.paging.extent import PAGE_BYTES, Extent, PageState
from xinfer_lab.paging.policy import EvictionPolicy, open_policy
from xinfer_lab.paging.statistics import PoolStatistics
from xinfer_lab.paging.table import PageEntry, PageTable
from xinfer_lab.paging.transfers import Transfers

__all__ = ["HybridMemoryPool"]


class HybridMemoryPool:
    """``pages`` pages of pinned host memory and ``frames`` frames of device memory, each of ``page_bytes`` bytes, both
    allocated once. Every page has its home in the host pool; those in use are in frames.

    Whoever uses pages on the direct queue does so between `acquire` and `release`; `prefetch` starts a copy ahead of
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

        Raises `PageError` for an extent that is on the device: what is there would stay as it was.
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
        """The extent's contents are not wanted any more; its pages and frames are free. Nothing is written back."""
        entry = self._idle(extent, "destroyed")
        if entry.frame is not None:
            self._drop(entry)
        self.table.remove(extent)
        self._homes[extent.first : extent.first + extent.pages] = bytes(extent.pages)

    # Using it

    def prefetch(self, *extents: Extent) -> bool:
        """Start copies of ``extents`` that are not on the device, in this order, until no frame can be had without
        evicting what is acquired or on its way. Returns whether all of them are there or on their way now.
        """
        entries = map(self.table.entry, dict.fromkeys(extents))
        missing = [entry for entry in entries if entry.frame is None and entry.filled]
        started = 0
        for entry in missing:
            if not self._bring(entry, ahead=True):
                self._counts["declined"] += 1
                break
            started += 1
            self._counts["prefetches"] += 1
        if started:
            self._transfers.sent()
        return started == len(missing)

    def acquire(self, *extents: Extent, write: bool = False) -> None:
        """From here on the direct queue may use these extents, until `release`; with ``write`` it may write them too.

        What is missing is fetched, and the direct queue waits for it. An extent without contents is not fetched, and
        may only be acquired to write. All or none are acquired. Raises `PoolFull` if no frames can be freed,
        `PageError` for an extent without contents.
        """
        entries = [self.table.entry(extent) for extent in extents]
        if not write and (empty := next((entry for entry in entries if not entry.filled), None)) is not None:
            raise PageError(
                f"{empty.extent.name!r} has no contents yet: fill it, or acquire it with write=True and write all of it"
            )
        found = [_found(entry) for entry in entries]
        missing = any(entry.filled and entry.frame is None for entry in entries)
        held = 0
        try:
            for entry in entries:
                if entry.frame is None:
                    self._bring(entry, ahead=False)
                entry.pins += 1
                held += 1
            if missing:
                self._transfers.sent()
            if write and entries:
                self._transfers.before_writing(entries)
            elif any(entry.state is not PageState.IN_DEVICE for entry in entries):
                self._transfers.before_reading(entries)
        except BaseException:
            for entry in entries[:held]:
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
        """Start copying home those of ``extents`` that are dirty; they stay, and may be read meanwhile."""
        for entry in [self._idle(extent, "written back") for extent in extents]:
            if entry.dirty:
                self._save(entry)

    def evict(self, extent: Extent) -> None:
        """Give the extent's frames up; it is written back first if it is dirty. Nothing happens if it has none."""
        entry = self._idle(extent, "evicted")
        if entry.frame is not None:
            self._evict(entry)

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

    def _bring(self, entry: PageEntry, *, ahead: bool) -> bool:
        """Give ``entry`` frames and start its copy, if it has contents. Only what is fetched ahead may find no room."""
        frame = self._make_room(entry, ahead=ahead)
        if frame is None:
            return False
        if entry.filled:
            self._transfers.bring(entry.extent, frame)
            self._counts["bytes_to_device"] += entry.extent.nbytes
        self.table.bind(entry, frame)
        entry.state = PageState.MIGRATING
        self.policy.placed(entry.extent.first)
        return True

    def _make_room(self, entry: PageEntry, *, ahead: bool) -> int | None:
        """The first of enough neighbouring free frames, after evicting what lay there. None: not ahead of time."""
        pages, leaving = entry.extent.pages, set[int]()
        frame = self.table.gap(pages)
        while frame is None:
            victim = self.policy.choose(self._may_go(leaving, ahead), entry.extent.first if ahead else None)
            if victim is None and ahead:
                return None
            if victim is None:
                raise self._full(entry.extent)
            leaving.add(victim)
            frame = self.table.gap(pages, leaving)
        for number in range(frame, frame + pages):
            if (owner := self.table.owner(number)) is not None:
                self._evict(owner)
        return frame

    def _may_go(self, leaving: set[int], ahead: bool) -> Callable[[int], bool]:
        def may_go(page: int) -> bool:
            entry = self.table.by_key(page)
            moving = ahead and entry.state is PageState.MIGRATING
            return not (entry.pins or moving or page in leaving)

        return may_go

    def _full(self, extent: Extent) -> PoolFull:
        held: Sequence[PageEntry] = [entry for entry in self.table if entry.pins]
        names = ", ".join(repr(entry.extent.name) for entry in held[:6]) + (" and more" if len(held) > 6 else "")
        return PoolFull(
            f"{extent.name!r} needs {extent.pages} neighbouring frames of {self.table.frames}, of which "
            f"{sum(entry.extent.pages for entry in held)} are acquired ({names}) and cannot be evicted: release what "
            f"is no longer used, or give the pool more frames"
        )

    def _evict(self, entry: PageEntry) -> None:
        saving = entry.dirty
        if saving:
            self._save(entry)
        self._drop(entry)
        entry.state = PageState.MIGRATING if saving else PageState.IN_HOST
        self._counts["evictions"] += 1

    def _save(self, entry: PageEntry) -> None:
        self._transfers.save(entry)
        entry.dirty = False
        self._counts["write_backs"] += 1
        self._counts["bytes_to_host"] += entry.extent.nbytes

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
