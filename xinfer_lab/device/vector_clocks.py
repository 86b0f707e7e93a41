"""Vector clocks: what has surely completed where, worked out from a command stream in issue order.

A *lane* is the host or a queue. Each record is one tick of its lane. A lane's clock holds, for every lane, how many of
that lane's records have completed before the lane goes on; so record i is ordered before record j exactly when j's
clock, taken as j starts, holds at least i's tick.

Edges: a queue works its records off in order; a signal releases the queue waits and host waits for its value; and a
queue cannot start what the host has not submitted yet, so a queue record is after all the host did before issuing it.

Clocks rather than a graph search: each record is looked at once, and asking for an order is one comparison.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from xinfer_lab.device.errors import FenceError
from xinfer_lab.device.records import HOST, HostWait, Record, Signal, Wait, queue_of

__all__ = ["Clocks", "FenceHistory", "Tick", "includes"]


@dataclass(slots=True)
class FenceHistory:
    """All signals of one fence so far: its queue, and for each signal its value, record index and clock."""

    queue: str
    values: list[int] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    clocks: list[tuple[int, ...]] = field(default_factory=list)

    def first_reaching(self, value: int) -> int | None:
        """Position of the first signal whose value is at least ``value``; None for 0, which each fence starts at."""
        position = bisect_left(self.values, value)
        return position if value > 0 and position < len(self.values) else None


@dataclass(frozen=True, slots=True)
class Tick:
    """Where a record stands: its ``lane`` (a number), its tick there, and for a wait the record index of its signal.

    ``clock`` is the lane's clock as the record starts, a wait's as it is over. It is live: the next record of the lane
    changes it, so copy what has to last.
    """

    lane: int
    number: int
    clock: list[int]
    signal: int | None = None


def includes(clock: Sequence[int], lane: int, number: int) -> bool:
    """Whether ``clock`` knows tick ``number`` of ``lane`` to be over; one older than the lane knows nothing of it."""
    return lane < len(clock) and clock[lane] >= number


def _join(clock: list[int], other: Sequence[int]) -> None:
    for lane, number in enumerate(other):
        if number > clock[lane]:
            clock[lane] = number


class Clocks:
    """The clocks of all lanes after the records observed so far. Lane 0 is the host."""

    def __init__(self) -> None:
        self.lanes: dict[str, int] = {HOST: 0}
        self.fences: dict[str, FenceHistory] = {}
        self._count = 0
        self._clocks: list[list[int]] = [[0]]
        self._pending: list[int] = [0]  # the clock of each lane after its last record, own tick included
        self._host_seen: list[int] = [0]

    def lane(self, name: str) -> int:
        """The number of the lane called ``name``, which starts to exist when it is first named."""
        number = self.lanes.get(name)
        if number is None:
            number = self.lanes[name] = len(self.lanes)
            for clock in self._clocks:
                clock.append(0)
            self._clocks.append([0] * len(self.lanes))
            self._pending.append(0)
            self._host_seen.append(-1)
        return number

    def now(self, name: str) -> list[int]:
        """The clock that the next record of lane ``name`` would start with, if it were issued now."""
        lane = self.lane(name)
        clock = list(self._clocks[lane])
        clock[lane] = self._pending[lane]
        if lane:
            host = list(self._clocks[0])
            host[0] = self._pending[0]
            _join(clock, host)
        return clock

    def advance(self, record: Record) -> Tick:
        """Take in the next record. A wait for a value that no earlier record signals waits for nothing.

        Raises `FenceError` where a fence is signalled by a second queue or by a value that does not grow: the order
        of such a stream is not defined.
        """
        lane = self.lane(queue_of(record))
        clock = self._clocks[lane]
        clock[lane] = self._pending[lane]
        if lane:
            submitted = self._pending[0]
            if self._host_seen[lane] != submitted:
                self._host_seen[lane] = submitted
                _join(clock, self._clocks[0])
                clock[0] = submitted
        signal = None
        if isinstance(record, (Wait, HostWait)):
            fence = self.fences.get(record.fence)
            position = fence.first_reaching(record.value) if fence is not None else None
            if fence is not None and position is not None:
                _join(clock, fence.clocks[position])
                signal = fence.records[position]
        self._pending[lane] += 1
        if isinstance(record, Signal):
            self._record_signal(record, clock, lane)
        self._count += 1
        return Tick(lane, self._pending[lane], clock, signal)

    def _record_signal(self, record: Signal, clock: list[int], lane: int) -> None:
        fence = self.fences.setdefault(record.fence, FenceHistory(record.queue))
        if fence.queue != record.queue:
            raise FenceError(
                f"fence {record.fence!r} is signalled by queue {record.queue!r} in record {self._count}, but it "
                f"belongs to queue {fence.queue!r}, which signalled it in record {fence.records[0]}. "
                "Give each queue a fence of its own."
            )
        if record.value <= (last := fence.values[-1] if fence.values else 0):
            raise FenceError(
                f"fence {record.fence!r} is signalled with {record.value} in record {self._count}, but it has been "
                f"signalled with {last} before: values must grow from 1 on. Signal with {last + 1} or more."
            )
        after = list(clock)
        after[lane] = self._pending[lane]
        fence.values.append(record.value)
        fence.records.append(self._count)
        fence.clocks.append(tuple(after))
