"""Answers which records of a command stream are ordered, and which may run at the same time."""

from __future__ import annotations

from collections.abc import Iterable

from xinfer_lab.device.records import Record
from xinfer_lab.device.vector_clocks import Clocks, includes

__all__ = ["Ordering"]


class Ordering:
    """Happens-before over a whole stream: by what the fences say, not by what one run happened to do.

    Overlap is asked for like this: no happens-before path orders an upload against a kernel when `concurrent` says so.
    Raises `FenceError` for a stream whose fences have two signalling queues or values that do not grow.
    """

    def __init__(self, stream: Iterable[Record]) -> None:
        clocks = Clocks()
        self._lanes: list[int] = []
        self._numbers: list[int] = []
        self._starts: list[tuple[int, ...]] = []
        for record in stream:
            tick = clocks.advance(record)
            self._lanes.append(tick.lane)
            self._numbers.append(tick.number)
            self._starts.append(tuple(tick.clock))

    def __len__(self) -> int:
        return len(self._starts)

    def before(self, i: int, j: int) -> bool:
        """Whether record ``i`` has surely completed when record ``j`` starts (when ``j`` is a wait: when it is over).

        Indices count from 0; one outside of the stream raises IndexError.
        """
        for index in (i, j):
            if not 0 <= index < len(self):
                raise IndexError(f"the stream has records 0 to {len(self) - 1}; there is no record {index}")
        return includes(self._starts[j], self._lanes[i], self._numbers[i])

    def concurrent(self, i: int, j: int) -> bool:
        """Whether nothing orders records ``i`` and ``j``: they may run at the same time, or in either order."""
        return i != j and not self.before(i, j) and not self.before(j, i)
