"""Maps each byte range of a buffer to the newest access to it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

__all__ = ["NewestAccess"]


class NewestAccess:
    """For each byte of a buffer, the newest access of one kind by one lane: its tick there and its record."""

    __slots__ = ("_ends", "_starts", "_what", "newest")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._what: list[tuple[int, int]] = []
        self.newest = 0

    def put(self, start: int, end: int, tick: int, record: int) -> None:
        """Let ``record`` be the newest access to bytes ``start`` to ``end``."""
        self.newest = tick
        starts, ends = self._starts, self._ends
        low = bisect_right(ends, start)
        if low < len(starts) and starts[low] == start and ends[low] == end:
            self._what[low] = (tick, record)
            return
        high = bisect_left(starts, end, low)
        pieces = [(start, end, (tick, record))]
        if low < high:
            if starts[low] < start:
                pieces.insert(0, (starts[low], start, self._what[low]))
            if ends[high - 1] > end:
                pieces.append((end, ends[high - 1], self._what[high - 1]))
        starts[low:high] = [piece[0] for piece in pieces]
        ends[low:high] = [piece[1] for piece in pieces]
        self._what[low:high] = [piece[2] for piece in pieces]

    def since(self, start: int, end: int, tick: int) -> Iterator[tuple[int, int, int]]:
        """(record, start, end) of every access in the range that is newer than ``tick``."""
        position = bisect_right(self._ends, start)
        while position < len(self._starts) and self._starts[position] < end:
            newest, record = self._what[position]
            if newest > tick:
                yield record, max(start, self._starts[position]), min(end, self._ends[position])
            position += 1
