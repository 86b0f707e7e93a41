"""The order that a page pool needs between its copies and the uses of its pages, and where a program has more."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field

from xinfer_lab.device.records import Copy, Dispatch, HostWait, Record, Wait
from xinfer_lab.grading.programs.calls import REFUSED
from xinfer_lab.grading.programs.evidence import Evidence
from xinfer_lab.labs.lab5.pages import PageCopy, PoolCall, pages_of

__all__ = ["needed_order", "too_much_order"]


def needed_order(evidence: Evidence) -> dict[int, int]:
    """For each command of a queue: those that have to be over before it, as a set of bits by record.

    A page comes into a frame after what the direct queue was given before a page there was last released, after the
    last copy home from there, and after the last one to the page's own home; it goes home after that release too. The
    direct queue goes on after the copies of what was acquired. Queues work in order, and what the host waits for
    outside of the pool is over before it goes on.
    """
    order = _Order(evidence)
    for index, record in enumerate(evidence.stream):
        order.take(index, record)
    return order.before


@dataclass(slots=True)
class _Order:
    evidence: Evidence
    before: dict[int, int] = field(default_factory=dict)
    _last_on: dict[str, int] = field(default_factory=dict)
    _host: int = 0
    _direct: int = 0
    _directs: list[int] = field(default_factory=list)
    _emptied: dict[int, int] = field(default_factory=dict)
    _returned: dict[int, int] = field(default_factory=dict)
    _arriving: dict[int, int] = field(default_factory=dict)
    _copies: dict[int, PageCopy] = field(default_factory=dict)
    _within: set[int] = field(default_factory=set)
    _ends: dict[int, list[PoolCall]] = field(default_factory=lambda: defaultdict(list))
    _released: dict[int | None, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        pages = pages_of(self.evidence)
        self._copies = {copy.record: copy for copy in pages.copies}
        for call in pages.calls:
            self._within.update(range(call.call.begin, call.call.end))
            if call.name != "acquire" or call.result not in (None, REFUSED):
                self._ends[call.call.end].append(call)

    def take(self, index: int, record: Record) -> None:
        for call in self._ends.get(index, ()):
            self._ended(call)
        if isinstance(record, HostWait) and index not in self._within:
            self._host |= sum(1 << i for i in self.before if self.evidence.ordering.before(i, index))
        if not isinstance(record, (Copy, Dispatch)):
            return
        bits = self._host | self._up_to(self._last_on.get(record.queue))
        if record.queue == "direct":
            bits |= self._direct
            self._directs.append(index)
        if (copy := self._copies.get(index)) is not None:
            bits |= self._for_copy(index, copy)
        self.before[index] = bits
        self._last_on[record.queue] = index

    def _ended(self, call: PoolCall) -> None:
        if call.name == "acquire":
            self._direct |= self._up_to(self._arriving.get(call.page))
        elif call.name == "release" and self._directs:
            self._released[call.before.frame_of(call.page)] = self._directs[-1]

    def _for_copy(self, index: int, copy: PageCopy) -> int:
        bits = self._up_to(self._released.get(copy.frame))
        if copy.brings:
            self._arriving[copy.page] = index
            return bits | self._up_to(self._emptied.get(copy.frame)) | self._up_to(self._returned.get(copy.page))
        self._emptied[copy.frame] = self._returned[copy.page] = index
        return bits

    def _up_to(self, index: int | None) -> int:
        return 0 if index is None else self.before[index] | 1 << index


def too_much_order(evidence: Evidence) -> tuple[int, int, int | None] | None:
    """Two commands of different queues of which the second has to wait for the first without need, and the wait within
    the pool that makes it so; None if there are none. Found is the first such second command, and the latest command
    that it waits for.
    """
    needed, ordering = needed_order(evidence), evidence.ordering
    commands = sorted(needed)
    end = max((call.call.end for call in pages_of(evidence).calls), default=0)
    for place, second in enumerate(commands[: bisect_left(commands, end)]):
        for first in reversed(commands[:place]):
            if not needed[second] >> first & 1 and ordering.before(first, second):
                return first, second, _made_by(evidence, first, second)
    return None


def _made_by(evidence: Evidence, first: int, second: int) -> int | None:
    """The first wait within the pool, between the two, that is over only when ``first`` is; one of the later command's
    own queue where there is any."""
    stream, queue = evidence.stream, getattr(evidence.stream[second], "queue", "")
    within = {index for call in pages_of(evidence).calls for index, _ in call.records(stream)}
    waits = [i for i in range(first, second) if i in within and isinstance(stream[i], (Wait, HostWait))]
    ends = [wait for wait in waits if evidence.ordering.before(first, wait)]
    return next((wait for wait in ends if getattr(stream[wait], "queue", "") == queue), ends[0] if ends else None)
