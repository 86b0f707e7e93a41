"""Keeps what a report needs to know of the stream so far: signals, waits, and the commands around a record."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from xinfer_lab.device.records import HostWait, Record, Signal, Wait, queue_of
from xinfer_lab.device.vector_clocks import FenceHistory

__all__ = ["Journal", "MissingEdge", "Moment"]

Moment = tuple[tuple[int, Record], ...]
"""Records with their indices, in the order of issue."""


@dataclass(frozen=True, slots=True)
class MissingEdge:
    """The happens-before edge that would have put two records in order.

    ``waiter`` (a queue or the host) has to wait for ``signaller``, a queue. Where the signal was there and only the
    wait is missing, ``fence``, ``value`` and ``signal`` (its record) name it. Where the signal itself is missing,
    ``value`` and ``signal`` are None, and ``fence`` is the fence that ``signaller`` has used so far, if it has used
    just one. ``last_wait`` is the waiter's last wait for that fence, with ``last_value`` what it asked for. For an
    early wait, ``value`` is what it asked for, ``reached`` the largest value that had been signalled by then, and
    ``signaller`` is '' if no queue had signalled.
    """

    waiter: str
    signaller: str
    fence: str | None = None
    value: int | None = None
    signal: int | None = None
    last_wait: int | None = None
    last_value: int | None = None
    reached: int = 0


class Journal:
    """The records observed so far, by lane, with their signals and waits."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._lanes: dict[str, list[int]] = {}
        self._signals: dict[str, list[int]] = {}
        self._waits: dict[tuple[str, str], int] = {}

    def append(self, record: Record) -> int:
        """Take in the next record and return its index."""
        index = len(self.records)
        self.records.append(record)
        lane = queue_of(record)
        self._lanes.setdefault(lane, []).append(index)
        if isinstance(record, Signal):
            self._signals.setdefault(lane, []).append(index)
        elif isinstance(record, (Wait, HostWait)):
            self._waits[lane, record.fence] = index
        return index

    def missing_edge(self, first: int, waiter: str, fences: dict[str, FenceHistory]) -> MissingEdge:
        """Which edge would have ordered record ``first``, a queue's, before what ``waiter`` does now."""
        signaller = queue_of(self.records[first])
        signals = self._signals.get(signaller, [])
        position = bisect_right(signals, first)
        fence: str | None = None
        value = index = last = last_value = None
        if position < len(signals):
            index = signals[position]
            signal = self.records[index]
            assert isinstance(signal, Signal)
            fence, value = signal.fence, signal.value
        elif len(names := [name for name, past in fences.items() if past.queue == signaller]) == 1:
            fence = names[0]
        if fence is not None and (last := self._waits.get((waiter, fence))) is not None:
            wait = self.records[last]
            assert isinstance(wait, (Wait, HostWait))
            last_value = wait.value
        return MissingEdge(waiter, signaller, fence, value, index, last, last_value)

    def moment(self, first: int, second: int, missing: MissingEdge | None = None) -> Moment:
        """What was issued around ``first`` and just before ``second`` by their lanes, and what ``missing`` speaks
        of."""
        chosen = {first, second}
        for index, before, after in ((first, 1, 2), (second, 3, 0)):
            lane = self._lanes[queue_of(self.records[index])]
            position = bisect_left(lane, index)
            chosen.update(lane[max(0, position - before) : position + after + 1])
        if missing is not None:
            chosen.update(index for index in (missing.signal, missing.last_wait) if index is not None)
        return tuple((index, self.records[index]) for index in sorted(chosen) if index <= second)
