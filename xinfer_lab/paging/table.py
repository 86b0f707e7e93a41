"""The page table: which page lies in which frame, and back; states, pins and dirty bits. Pure bookkeeping.

A logical page's home is the place of the same number in the host pool, for as long as its extent lives. Either all
pages of an extent are in frames, side by side and in order, or none is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from xinfer_lab.paging.errors import PageError
from xinfer_lab.paging.extent import Extent, PageState

__all__ = ["PageEntry", "PageTable"]


@dataclass(slots=True)
class PageEntry:
    """What the table knows of ``extent``: its state, its first device ``frame`` (None: it has none), how often it is
    acquired now, whether the device's bytes differ from those at home, and whether it has any contents yet."""

    extent: Extent
    state: PageState = PageState.IN_HOST
    frame: int | None = None
    pins: int = 0
    dirty: bool = False
    filled: bool = False

    @property
    def frames(self) -> range:
        """The frames that it lies in."""
        return range(0) if self.frame is None else range(self.frame, self.frame + self.extent.pages)


class PageTable:
    """Entries by extent, and the owner of every one of ``frames`` device frames."""

    def __init__(self, frames: int) -> None:
        self._entries: dict[int, PageEntry] = {}
        self._owners: list[PageEntry | None] = [None] * frames
        self._free = list(range(frames))  # in ascending order

    @property
    def free(self) -> int:
        """How many frames have no owner."""
        return len(self._free)

    @property
    def frames(self) -> int:
        """How many frames there are."""
        return len(self._owners)

    def __iter__(self) -> Iterator[PageEntry]:
        return iter(self._entries.values())

    def add(self, extent: Extent) -> PageEntry:
        """A new extent, in no frame."""
        entry = self._entries[extent.first] = PageEntry(extent)
        return entry

    def remove(self, extent: Extent) -> None:
        """Forget an extent that is in no frame."""
        if self.entry(extent).frame is not None:
            raise PageError(f"{extent.name!r} still lies in frame {self.entry(extent).frame}: evict it first")
        del self._entries[extent.first]

    def entry(self, extent: Extent) -> PageEntry:
        """What is known of ``extent``. Raises `PageError` for one that was destroyed, or belongs to another pool."""
        entry = self._entries.get(extent.first)
        if entry is None or entry.extent is not extent:
            raise PageError(f"{extent.name!r} is not in this pool: it was destroyed, or another pool created it")
        return entry

    def by_key(self, key: int) -> PageEntry:
        """The entry whose extent begins at page ``key``: what policies call a page."""
        return self._entries[key]

    def bind(self, entry: PageEntry, frame: int) -> None:
        """``entry`` owns its frames from ``frame`` on. Raises `PageError` if one of them has an owner already."""
        frames = range(frame, frame + entry.extent.pages)
        if entry.frame is not None or not 0 <= frame <= self.frames - entry.extent.pages:
            raise PageError(f"{entry.extent.name!r} cannot be put into frame {frame}; it is in frame {entry.frame}")
        for number in frames:
            if (owner := self._owners[number]) is not None:
                raise PageError(f"frame {number} belongs to {owner.extent.name!r}, not to {entry.extent.name!r}")
        for number in frames:
            self._owners[number] = entry
        entry.frame = frame
        place = bisect_left(self._free, frame)
        del self._free[place : place + len(frames)]

    def unbind(self, entry: PageEntry) -> None:
        """``entry`` owns no frame any more."""
        for number in entry.frames:
            self._owners[number] = None
        place = bisect_left(self._free, entry.frame or 0)
        self._free[place:place] = entry.frames
        entry.frame = None

    def owner(self, frame: int) -> PageEntry | None:
        """Whose pages lie in ``frame``."""
        return self._owners[frame]

    def page_in(self, frame: int) -> int | None:
        """The logical page that lies in ``frame``."""
        entry = self._owners[frame]
        return None if entry is None or entry.frame is None else entry.extent.first + frame - entry.frame

    def frame_of(self, page: int) -> int | None:
        """The frame that logical page ``page`` lies in."""
        for entry in self._entries.values():
            if page in entry.extent.numbers:
                return None if entry.frame is None else entry.frame + page - entry.extent.first
        return None

    def gap(self, pages: int) -> int | None:
        """The first frame of the first ``pages`` neighbouring frames that are free; None if there are none."""
        free = self._free
        places = range(len(free) - pages + 1)
        return next((free[i] for i in places if free[i + pages - 1] - free[i] == pages - 1), None)

    def gap_around(self, victim: PageEntry, pages: int, leaving: Collection[int]) -> int | None:
        """As `gap`, but of frames that are free or would be without the extents whose first pages are in ``leaving``.

        ``victim`` is the one that was added to them last, so that a gap which was not there before lies around it.
        """

        def usable(frame: int) -> bool:
            owner = self._owners[frame]
            return owner is None or owner.extent.first in leaving

        start, end = victim.frames.start, victim.frames.stop
        while start > 0 and usable(start - 1):
            start -= 1
        while end - start < pages and end < self.frames and usable(end):
            end += 1
        return start if end - start >= pages else None

    def places(self, count: int) -> Sequence[int]:
        """``count`` of the free frames, of which there are as many, for single pages: in growing order, and neighbours
        where that can be. They lie at the far end, so that long gaps stay at the near one.
        """
        free = self._free
        if count < 1:
            return ()
        for end in range(len(free), count - 1, -1):
            if free[end - 1] - free[end - count] == count - 1:
                return range(free[end - count], free[end - 1] + 1)
        return free[len(free) - count :]

    def check(self) -> None:
        """Raise `PageError` where the table contradicts itself. For tests: it looks at every page and frame."""
        owned: dict[int, str] = {}
        for entry in self._entries.values():
            name = entry.extent.name
            for frame in entry.frames:
                if frame in owned:
                    raise PageError(f"frame {frame} belongs to {owned[frame]!r} and to {name!r}")
                if self._owners[frame] is not entry:
                    raise PageError(f"{name!r} says that it lies in frame {frame}, which does not know of it")
                owned[frame] = name
            if entry.state is PageState.IN_DEVICE and entry.frame is None:
                raise PageError(f"{name!r} is IN_DEVICE without a frame")
            if entry.state is PageState.IN_HOST and entry.frame is not None:
                raise PageError(f"{name!r} is IN_HOST and keeps frame {entry.frame}")
            if (entry.pins or entry.dirty) and entry.state is not PageState.IN_DEVICE:
                raise PageError(f"{name!r} is acquired or dirty, but {entry.state.value}")
        for frame, owner in enumerate(self._owners):
            if owner is not None and frame not in owned:
                raise PageError(f"frame {frame} belongs to {owner.extent.name!r}, which does not lie there")
        if self._free != [frame for frame in range(self.frames) if frame not in owned]:
            raise PageError(f"frames {self._free} are listed as free, beside those that are owned: {sorted(owned)}")
