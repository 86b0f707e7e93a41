"""Rules about a program's host memory: how much is pinned, and that the host waits only for room."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator

from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.records import (
    Allocate,
    Copy,
    Free,
    HostRead,
    HostWait,
    HostWrite,
    Signal,
    Span,
)
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.run_rules import Rule, awaited, host_never_sleeps

__all__ = ["pins", "waits_for_room_only"]


def pins(planned: Callable[[Evidence], int], besides: frozenset[str] = frozenset()) -> Rule:
    """The rule that exactly ``planned(evidence)`` bytes of pinned memory are alive at most while the program runs.

    Heaps named in ``besides`` and the case's read-backs belong to the program around the answer, and so do those freed
    before the first pass.
    """

    def pins_as_planned(evidence: Evidence) -> Fault | None:
        living: dict[str, int] = {}
        given = {*besides, *evidence.case.read_backs}
        most, at = 0, 0
        for index, record in enumerate(evidence.stream):
            if isinstance(record, Allocate) and record.heap != "default" and record.buffer not in given:
                living[record.buffer] = record.size
            elif isinstance(record, Free):
                living.pop(record.buffer, None)
            if index >= evidence.first_pass and sum(living.values()) > most:
                most, at = sum(living.values()), index
        wanted = planned(evidence)
        if most == wanted:
            return None
        return Fault(
            "pinned",
            "Another amount of host memory is pinned than was planned.",
            expected=f"{format_bytes(wanted)} of pinned memory, {wanted} bytes",
            got=f"{format_bytes(most)}, {most} bytes",
            records=(at,),
            hint="Pinned memory is taken away from everybody else: create one heap of the size that was asked for.",
            show=False,
        )

    return pins_as_planned


def waits_for_room_only(evidence: Evidence) -> Fault | None:
    """The host waits only where it is about to write over what a copy reads, and for no later value than that copy's.

    Asked from the first pass on until the program around the answer has its last result.
    """
    known: dict[str, int] = defaultdict(int)
    for index in evidence.host_waits():
        record = evidence.stream[index]
        if not isinstance(record, HostWait) or record.value <= known[record.fence]:
            continue
        known[record.fence] = record.value
        if (fault := _needless(evidence, index, record)) is not None:
            return fault
    return host_never_sleeps(evidence)


def _needless(evidence: Evidence, index: int, wait: HostWait) -> Fault | None:
    room = list(_written_next(evidence, index))
    where = " and ".join(map(str, room)) or "nothing"
    got = f"the host waits for {awaited(wait)}"
    needed = max(
        (_finished_at(evidence, copy, wait.fence, index) for copy in _readers(evidence, index, room)), default=0
    )
    if needed == 0:
        return Fault(
            "host-waits",
            "The host waits where it has nothing to wait for.",
            expected=f"no wait here: what the host writes next is {where}, and no copy reads that"
            if room
            else "no wait here: the host is not about to write anything",
            got=got,
            records=(index,),
            hint="Let queues wait for queues; the host waits only before it writes over what a copy may still read.",
        )
    if wait.value <= needed:
        return None
    return Fault(
        "waits-too-long",
        "The host waits for more than it needs.",
        expected=f"a wait for {wait.fence} >= {needed}: the last copy that reads {where} is done then",
        got=got,
        records=(index,),
        hint="Remember for each range the value after which it is free.",
    )


def _written_next(evidence: Evidence, index: int) -> Iterator[Span]:
    """The range of each upload heap that the host writes after record ``index``, before it submits anything."""
    found: dict[str, tuple[int, int]] = {}
    for following in range(index + 1, len(evidence.stream)):
        record = evidence.stream[following]
        if isinstance(record, HostWrite):
            low, high = found.get(record.dst.buffer, (record.dst.offset, record.dst.end))
            found[record.dst.buffer] = min(low, record.dst.offset), max(high, record.dst.end)
        elif hasattr(record, "queue") or isinstance(record, HostRead):
            break
    for buffer, (low, high) in found.items():
        yield Span(buffer, low, high - low)


def _readers(evidence: Evidence, index: int, room: list[Span]) -> Iterator[int]:
    for place, copy in evidence.derive(_copies):
        if place < index and any(copy.src.overlaps(span) for span in room):
            yield place


def _copies(evidence: Evidence) -> list[tuple[int, Copy]]:
    return [(index, record) for index, record in enumerate(evidence.stream) if isinstance(record, Copy)]


def _finished_at(evidence: Evidence, copy: int, fence: str, until: int) -> int:
    """The first value of ``fence`` that the copy's queue signals after it, before record ``until``; 0 if there is
    none."""
    signals = evidence.derive(_signals).get((getattr(evidence.stream[copy], "queue", ""), fence), [])
    following = bisect_right(signals, (copy, 0))
    return signals[following][1] if following < len(signals) and signals[following][0] < until else 0


def _signals(evidence: Evidence) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Queue and fence -> the record and the value of each signal, in order."""
    found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for index, record in enumerate(evidence.stream):
        if isinstance(record, Signal):
            found[record.queue, record.fence].append((index, record.value))
    return found
