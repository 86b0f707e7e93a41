"""What a program did with a page pool, worked out from its stream: what lay in which frame, who used it, what moved.

Calls of the pool that were noted beside the stream say what each copy was for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.records import Copy, Dispatch, Record, Span
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.grading.programs.calls import REFUSED, Call
from xinfer_lab.grading.programs.evidence import Evidence
from xinfer_lab.labs.lab5.page_shape import PageShape

__all__ = ["FETCHES", "Moment", "PageCopy", "PageUse", "PagesRead", "PoolCall", "pages_of", "read_pages"]

FETCHES = ("prefetch", "acquire")
"""The calls that may bring a page."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The pool before a call: the page in each frame that holds one, how often each page is acquired, the pages whose
    copies somebody was told to wait for, and those that were written since they came or went home.

    ``pages`` goes by copies and by ``evict`` calls: a page lies in its frame until another one comes.
    """

    pages: Mapping[int, int]
    pins: Mapping[int, int]
    arrived: frozenset[int | None]
    dirty: frozenset[int | None]

    def frame_of(self, page: int) -> int | None:
        """The frame that ``page`` lies in, or is on its way to."""
        return next((frame for frame, held in self.pages.items() if held == page), None)

    def room(self, shape: PageShape, *, ahead: bool) -> bool:
        """Whether a page that comes may have a frame: for a page that is needed later only those that are free, or
        whose page has arrived."""
        held = [page for page in self.pages.values() if self.pins.get(page, 0) or (ahead and page not in self.arrived)]
        return len(held) < shape.frames


@dataclass(frozen=True, slots=True)
class PageCopy:
    """Record ``record`` copies between the home of ``page`` and ``frame`` on ``queue``: to the device if ``brings``.

    ``whole``: all of the page, and nothing else. ``held``: the page that lay in the frame, and ``dirty`` whether it had
    been written since it came or went home.
    """

    record: int
    queue: str
    page: int
    frame: int
    brings: bool
    whole: bool
    held: int | None
    dirty: bool


@dataclass(frozen=True, slots=True)
class PageUse:
    """Record ``record``, no copy of the pool's own, reads ``frame``, which holds ``page`` (None: nothing), or
    ``writes`` it. ``fetched`` is the copy that brought the page."""

    record: int
    queue: str
    frame: int
    page: int | None
    writes: bool
    fetched: int | None


@dataclass(frozen=True, slots=True)
class PoolCall:
    """A call of the pool, what was there before it, and the pool's copies that were submitted within it."""

    call: Call
    before: Moment
    copies: tuple[PageCopy, ...]

    @property
    def name(self) -> str:
        """prefetch, acquire, release or evict."""
        return self.call.name

    @property
    def page(self) -> int:
        """The page that it is about."""
        page = _number(self.call, 0, -1)
        assert page is not None
        return page

    @property
    def result(self) -> int | None:
        """What it returned: a frame (`REFUSED`: the pool is full), or 1 or 0; None where it returned nothing, or raised
        something else."""
        return _number(self.call, 1, None)

    def records(self, stream: CommandStream) -> Iterator[tuple[int, Record]]:
        """What was submitted within it, with its place in ``stream``."""
        for index in range(self.call.begin, min(self.call.end, len(stream))):
            yield index, stream[index]


@dataclass(frozen=True, slots=True)
class PagesRead:
    """Everything that concerns a pool, in order of issue."""

    calls: tuple[PoolCall, ...]
    copies: tuple[PageCopy, ...]
    uses: tuple[PageUse, ...]

    @property
    def brought(self) -> tuple[PageCopy, ...]:
        """The copies to the device."""
        return tuple(copy for copy in self.copies if copy.brings)


def _number(call: Call, place: int, otherwise: int | None) -> int | None:
    value = call.values[place] if place < len(call.values) else otherwise
    return value if isinstance(value, int) else otherwise


@dataclass(slots=True)
class _Reader:
    shape: PageShape
    kernels: KernelTable
    pages: dict[int, int] = field(default_factory=dict)
    pins: dict[int, int] = field(default_factory=dict)
    arrived: set[int | None] = field(default_factory=set)
    dirty: set[int | None] = field(default_factory=set)
    fetched: dict[int, int] = field(default_factory=dict)
    copies: list[PageCopy] = field(default_factory=list)
    uses: list[PageUse] = field(default_factory=list)

    def moment(self) -> Moment:
        return Moment(dict(self.pages), dict(self.pins), frozenset(self.arrived), frozenset(self.dirty))

    def read(self, index: int, record: Record) -> None:
        if isinstance(record, Copy):
            homes = self.shape.page_at(record.src), self.shape.page_at(record.dst)
            frames = self.shape.frame_at(record.dst), self.shape.frame_at(record.src)
            if homes[0] is not None and frames[0] is not None:
                self._bring(index, record, homes[0], frames[0])
            elif homes[1] is not None and frames[1] is not None:
                self._save(index, record, homes[1], frames[1])
            else:
                self._use(index, record.queue, (record.src,), writes=False)
                self._use(index, record.queue, (record.dst,), writes=True)
        elif isinstance(record, Dispatch):
            access = self.kernels.access(record)
            self._use(index, record.queue, access.reads, writes=False)
            self._use(index, record.queue, access.writes, writes=True)

    def _bring(self, index: int, record: Copy, page: int, frame: int) -> None:
        whole = self.shape.is_whole(record.dst) and self.shape.is_whole(record.src)
        held = self.pages.pop(frame, None)
        self.pages = {place: other for place, other in self.pages.items() if other != page}
        self.copies.append(PageCopy(index, record.queue, page, frame, True, whole, held, held in self.dirty))
        self.arrived -= {held, page}
        self.dirty -= {held, page}
        self.pages[frame] = page
        self.fetched[frame] = index

    def _save(self, index: int, record: Copy, page: int, frame: int) -> None:
        whole = self.shape.is_whole(record.dst) and self.shape.is_whole(record.src)
        held = self.pages.get(frame)
        self.copies.append(PageCopy(index, record.queue, page, frame, False, whole, held, held in self.dirty))
        self.dirty -= {held}

    def _use(self, index: int, queue: str, spans: tuple[Span, ...], *, writes: bool) -> None:
        frames = {frame for span in spans if (frame := self.shape.frame_at(span)) is not None}
        for frame in sorted(frames):
            page = self.pages.get(frame)
            self.uses.append(PageUse(index, queue, frame, page, writes, self.fetched.get(frame)))
            if writes and page is not None:
                self.dirty.add(page)

    def end(self, call: Call) -> None:
        """``call`` has returned."""
        page = _number(call, 0, -1)
        assert page is not None
        if call.name == "acquire" and _number(call, 1, REFUSED) != REFUSED:
            self.pins[page] = self.pins.get(page, 0) + 1
            self.arrived.add(page)
        elif call.name == "release":
            self.pins[page] = max(0, self.pins.get(page, 0) - 1)
        elif call.name == "evict":
            self.pages = {frame: held for frame, held in self.pages.items() if held != page}
            self.arrived -= {page}
            self.dirty -= {page}


def pages_of(evidence: Evidence) -> PagesRead:
    """What was done with the page pool whose sizes are the ``shape`` of the evidence's case."""
    return evidence.derive(_pages_of)


def _pages_of(evidence: Evidence) -> PagesRead:
    return read_pages(evidence.stream, evidence.calls, evidence.case.shape)


def read_pages(stream: CommandStream, calls: Sequence[Call], shape: PageShape) -> PagesRead:
    """What the program that issued ``stream`` did with the pool of ``shape``; ``calls`` in the order of their begin."""
    reader, found = _Reader(shape, KERNELS), list[PoolCall]()
    place = 0

    def read_until(end: int) -> None:
        nonlocal place
        for index in range(place, min(end, len(stream))):
            reader.read(index, stream[index])
        place = max(place, end)

    for call in calls:
        read_until(call.begin)
        before, known = reader.moment(), len(reader.copies)
        read_until(call.end)
        found.append(PoolCall(call, before, tuple(reader.copies[known:])))
        reader.end(call)
    read_until(len(stream))
    return PagesRead(tuple(found), tuple(reader.copies), tuple(reader.uses))
