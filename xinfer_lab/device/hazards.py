"""The hazard checker: which accesses of a command stream race, found from the stream alone.

Two accesses conflict when they touch a common byte and at least one writes it. A conflict that no happens-before path
orders is a hazard, whatever one run made of it. The checker reads the stream once, in issue order, and gives the same
verdict on every machine and run.

For each buffer, queue and kind of access it keeps only the newest access to each byte. That loses no verdict: an
older access of the same queue is over before the newer one, so whatever is not ordered after the older is not ordered
after the newer either, and conflicts with the newer in the same way. Of several races of one record it may name only
the nearest.
"""

from __future__ import annotations

from collections.abc import Iterable

from xinfer_lab.device.accesses import NewestAccess
from xinfer_lab.device.hazard import HAZARD_KINDS, Hazard
from xinfer_lab.device.journal import Journal, MissingEdge
from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.records import (
    HOST,
    Allocate,
    Free,
    HostRead,
    HostWait,
    HostWrite,
    Record,
    Span,
    Transition,
    Wait,
    queue_of,
)
from xinfer_lab.device.vector_clocks import Clocks, Tick

__all__ = ["HazardChecker", "find_hazards"]

_Found = dict[tuple[int, str], Span | None]


class _History:
    """Who accessed a buffer since it was allocated: by lane, reads and writes."""

    __slots__ = ("reads", "writes")

    def __init__(self) -> None:
        self.reads: dict[int, NewestAccess] = {}
        self.writes: dict[int, NewestAccess] = {}


class HazardChecker:
    """Finds the hazards of a stream record by record, as it is issued."""

    def __init__(self, kernels: KernelTable) -> None:
        self._kernels = kernels
        self._clocks = Clocks()
        self._journal = Journal()
        self._history: dict[str, _History] = {}
        self._freed: dict[str, int] = {}

    def observe(self, record: Record) -> tuple[Hazard, ...]:
        """Take in the next record of the stream and return the hazards that it completes, by the other record's index.

        Raises `FenceError` for a fence with two signalling queues or values that do not grow, `KernelError` for a
        kernel that the table does not hold.
        """
        lane = queue_of(record)
        access = self._kernels.access(record)
        tick = self._clocks.advance(record)
        index = self._journal.append(record)
        found: _Found = {}
        if isinstance(record, (Wait, HostWait)):
            self._look_at_wait(record, lane, index, tick, found)
        elif isinstance(record, Free):
            self._look_at_free(record, index, tick, found)
        elif isinstance(record, Allocate):
            self._look_at_whole(record.buffer, "use-after-free", tick, found)
            self._history.pop(record.buffer, None)
            self._freed.pop(record.buffer, None)
        elif isinstance(record, Transition):
            if record.buffer in self._freed:
                found[self._freed[record.buffer], "use-after-free"] = None
        else:
            self._look_at_access(record, access.reads, access.writes, tick, found)
            if tick.lane:
                self._remember(access.reads, access.writes, tick, index)
        hazards = sorted(found.items(), key=_order)
        return tuple(self._hazard(kind, first, index, span) for (first, kind), span in hazards)

    def _look_at_wait(self, record: Wait | HostWait, lane: str, index: int, tick: Tick, found: _Found) -> None:
        if tick.signal is None:
            if record.value > 0:  # every fence has reached 0
                found[index, "early-wait"] = None
        elif lane != HOST and self._clocks.fences[record.fence].queue == lane:
            found[tick.signal, "self-wait"] = None

    def _look_at_free(self, record: Free, index: int, tick: Tick, found: _Found) -> None:
        if record.buffer in self._freed:
            found[self._freed[record.buffer], "use-after-free"] = None
            return
        self._look_at_whole(record.buffer, "use-after-free", tick, found)
        self._history.pop(record.buffer, None)
        self._freed[record.buffer] = index

    def _look_at_whole(self, buffer: str, kind: str, tick: Tick, found: _Found) -> None:
        history = self._history.get(buffer)
        if history is None:
            return
        for lanes in (history.writes, history.reads):
            for lane, newest in lanes.items():
                if newest.newest > tick.clock[lane]:
                    for first, start, end in newest.since(0, 2**62, tick.clock[lane]):
                        found.setdefault((first, kind), Span(buffer, start, end - start))

    def _look_at_access(
        self,
        record: Record,
        reads: tuple[Span, ...],
        writes: tuple[Span, ...],
        tick: Tick,
        found: _Found,
    ) -> None:
        clock, own = tick.clock, tick.lane
        host = "host-write" if isinstance(record, HostWrite) else "host-read" if isinstance(record, HostRead) else ""
        for spans, is_write in ((reads, False), (writes, True)):
            for span in spans:
                if not span.size:
                    continue
                buffer = span.buffer
                if buffer in self._freed:
                    found.setdefault((self._freed[buffer], "use-after-free"), span)
                    continue
                history = self._history.get(buffer)
                if history is None:
                    continue
                for lane, newest in history.writes.items():
                    if lane != own and newest.newest > clock[lane]:
                        kind = host or ("write-after-write" if is_write else "read-after-write")
                        for first, start, end in newest.since(span.offset, span.end, clock[lane]):
                            found.setdefault((first, kind), Span(buffer, start, end - start))
                if not is_write:
                    continue
                for lane, newest in history.reads.items():
                    if lane != own and newest.newest > clock[lane]:
                        kind = host or "write-after-read"
                        for first, start, end in newest.since(span.offset, span.end, clock[lane]):
                            found.setdefault((first, kind), Span(buffer, start, end - start))

    def _remember(self, reads: tuple[Span, ...], writes: tuple[Span, ...], tick: Tick, index: int) -> None:
        lane, number = tick.lane, tick.number
        for spans, is_write in ((reads, False), (writes, True)):
            for span in spans:
                if not span.size:
                    continue
                history = self._history.get(span.buffer)
                if history is None:
                    history = self._history[span.buffer] = _History()
                lanes = history.writes if is_write else history.reads
                newest = lanes.get(lane)
                if newest is None:
                    newest = lanes[lane] = NewestAccess()
                newest.put(span.offset, span.offset + span.size, number, index)

    def _hazard(self, kind: str, first: int, second: int, span: Span | None) -> Hazard:
        missing = None
        record = self._journal.records[second]
        if kind == "early-wait":
            assert isinstance(record, (Wait, HostWait))
            past = self._clocks.fences.get(record.fence)
            reached = past.values[-1] if past is not None else 0
            signaller = past.queue if past is not None else ""
            missing = MissingEdge(queue_of(record), signaller, record.fence, record.value, reached=reached)
        elif kind != "self-wait" and queue_of(self._journal.records[first]) != HOST:
            missing = self._journal.missing_edge(first, queue_of(record), self._clocks.fences)
        return Hazard(
            kind=kind,
            first=first,
            second=second,
            span=span,
            first_record=self._journal.records[first],
            second_record=record,
            missing=missing,
            moment=self._journal.moment(first, second, missing),
        )


def _order(item: tuple[tuple[int, str], Span | None]) -> tuple[int, int]:
    (first, kind), _ = item
    return first, HAZARD_KINDS.index(kind)


def find_hazards(stream: Iterable[Record], kernels: KernelTable) -> list[Hazard]:
    """All hazards of ``stream``, in the order of their second records. An empty list means that none is possible."""
    checker = HazardChecker(kernels)
    return [hazard for record in stream for hazard in checker.observe(record)]
