"""Writes a timeline as a trace for the Perfetto UI (ui.perfetto.dev) or chrome://tracing.

The form is the Trace Event Format. Perfetto counts in whole nanoseconds, drops a slice that overlaps another one of
its thread only in part, and binds a flow to the slice that is open on its thread at that nanosecond. So times are
rounded once, to nanoseconds; overlapping events of a lane get a thread of their own; and each end of a fence edge is
put inside a slice. A signal takes no time, so its edge leaves from the last nanosecond of the event before it and
arrives in the wait that it released, or in what came next.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xinfer_lab.device.node_names import node_of
from xinfer_lab.device.records import Copy, HostRead, HostWrite, Record
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.device.timeline import Flow, Timeline, TimelineEvent
from xinfer_lab.views.figures import require_finite
from xinfer_lab.views.slots import SlotOf, as_slot_of, slots_of
from xinfer_lab.views.timeline_panel import lane_names

__all__ = ["perfetto_json", "write_perfetto"]

PROCESS = 1
_FIRST_THREAD = 10
_ORDER = {"M": 0, "C": 1, "X": 2, "s": 3, "f": 4}


@dataclass(frozen=True, slots=True)
class _Slice:
    """An event on its thread, in nanoseconds."""

    event: TimelineEvent
    thread: int
    start: int
    end: int


def perfetto_json(timeline: Timeline, stream: CommandStream | None = None) -> dict[str, Any]:
    """``timeline`` as JSON-ready data: a thread for each lane, complete events, a flow for each fence edge, a counter.
    Of several cards, each further one is a process of its own.

    Given the ``stream`` that was timed, events also carry bytes, slot and source line. Fence edges whose wait is over
    before the event that was to release it even begins (a measured clock's jitter) are left out and counted in
    ``otherData``.
    """
    require_finite(timeline)
    slices, names, threads = _slices(timeline)
    slot_of = slots_of(stream) if stream is not None else as_slot_of(None)
    events = [_complete(item, stream, slot_of) for item in slices]
    lanes = {lane: _Lane(threads[lane], (s for s in slices if s.event.lane == lane)) for lane in lane_names(timeline)}
    left_out = 0
    for number, flow in enumerate(timeline.flows, 1):
        ends = _flow(flow, number, lanes)
        events += ends
        left_out += not ends
    events += [_counter(_nanoseconds(sample.time), sample.used) for sample in timeline.memory]
    _place(events, names)
    events.sort(key=lambda event: (event["ts"], _ORDER[event["ph"]], -event.get("dur", 0)))
    return {
        "traceEvents": [*_metadata(timeline, names), *events],
        "displayTimeUnit": "ns",
        "otherData": {"clock": timeline.clock, "fence edges left out": left_out},
    }


def write_perfetto(path: str | Path, timeline: Timeline, stream: CommandStream | None = None) -> None:
    """Write `perfetto_json` to ``path``, which the Perfetto UI opens."""
    data = perfetto_json(timeline, stream)
    Path(path).write_text(json.dumps(data, ensure_ascii=False, allow_nan=False), encoding="utf-8", newline="\n")


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def _microseconds(nanoseconds: int) -> float:
    """Nanoseconds in the format's unit, written so that multiplying by 1000 and truncating restores them."""
    value = nanoseconds / 1000
    while int(value * 1000) < nanoseconds:
        value = math.nextafter(value, math.inf)
    return value


def _slices(timeline: Timeline) -> tuple[list[_Slice], dict[int, str], dict[str, int]]:
    """Every event on a thread of its lane where none overlaps it in part; thread names; each lane's first thread."""
    slices: list[_Slice] = []
    names: dict[int, str] = {}
    threads: dict[str, int] = {}
    for lane in lane_names(timeline):
        threads[lane] = first = _FIRST_THREAD + len(names)
        free = [0]
        for event in sorted((e for e in timeline.events if e.lane == lane), key=lambda e: (e.start, e.record)):
            start, end = _nanoseconds(event.start), _nanoseconds(event.end)
            row = next((place for place, until in enumerate(free) if until <= start), len(free))
            free[row : row + 1] = [end]
            slices.append(_Slice(event, first + row, start, end))
        names |= {first + row: lane if row == 0 else f"{lane} ({row + 1})" for row in range(len(free))}
    return slices, names, threads


def _complete(item: _Slice, stream: CommandStream | None, slot_of: SlotOf) -> dict[str, Any]:
    args: dict[str, Any] = {"record": item.event.record}
    if stream is not None and item.event.record < len(stream):
        record = stream[item.event.record]
        size = _bytes(record)
        slot = slot_of(item.event.record)
        args |= {
            key: value
            for key, value in (("bytes", size), ("slot", slot), ("where", record.where or None))
            if value is not None
        }
    name = item.event.label or item.event.kind
    return _slice(name, item.event.kind, item.thread, item.start, item.end - item.start, args)


def _slice(name: str, kind: str, thread: int, start: int, length: int, args: dict[str, Any]) -> dict[str, Any]:
    times = {"ts": _microseconds(start), "dur": _microseconds(length)}
    return {"name": name, "cat": kind, "ph": "X", **times, "pid": PROCESS, "tid": thread, "args": args}


def _bytes(record: Record) -> int | None:
    match record:
        case Copy() | HostWrite():
            return record.dst.size
        case HostRead():
            return record.src.size
        case _:
            return None


class _Lane:
    """The slices of a lane that an edge can be bound to, those of at least a nanosecond, in the order of their
    records."""

    def __init__(self, thread: int, slices: Iterable[_Slice]) -> None:
        self.thread = thread
        self._slices = sorted((s for s in slices if s.end > s.start), key=lambda s: s.event.record)
        self._records = [item.event.record for item in self._slices]

    def before(self, record: int) -> _Slice | None:
        """The last slice issued before ``record``."""
        place = bisect_left(self._records, record)
        return self._slices[place - 1] if place else None

    def since(self, record: int) -> _Slice | None:
        """The slice of ``record``, or the first one issued after it."""
        place = bisect_left(self._records, record)
        return self._slices[place] if place < len(self._slices) else None

    @property
    def end(self) -> int:
        """The nanosecond at which the last slice is over."""
        return max((item.end for item in self._slices), default=0)


def _flow(flow: Flow, number: int, lanes: Mapping[str, _Lane]) -> list[dict[str, Any]]:
    """Start and end of a fence edge, each inside a slice, the start no later than the end; or nothing.

    Where a lane has no event before the signal, or none after the wait, a slice of one nanosecond stands for it.
    """
    signals, waits = lanes[flow.signal_lane], lanes[flow.wait_lane]
    name = f"{flow.fence} = {flow.value}"
    extra: list[dict[str, Any]] = []
    target = waits.since(flow.wait)
    if target is None:
        thread, arrive = waits.thread, max(_nanoseconds(flow.wait_time), waits.end)
        extra.append(_slice(f"wait {name}", "wait", thread, arrive, 1, {"record": flow.wait}))
    else:
        # Where the edge ends a wait, at that wait's end; else where the next event begins.
        thread, arrive = target.thread, target.end - 1 if target.event.record == flow.wait else target.start
    source = signals.before(flow.signal)
    if source is None:
        leave = min(_nanoseconds(flow.signal_time), arrive)
        extra.append(_slice(f"signal {name}", "signal", signals.thread, leave, 1, {"record": flow.signal}))
    else:
        leave = min(source.end - 1, arrive)
        if leave < source.start:
            return []
    common = {"name": name, "cat": "fence", "id": number, "pid": PROCESS}
    return [
        *extra,
        {**common, "ph": "s", "ts": _microseconds(leave), "tid": source.thread if source else signals.thread},
        {**common, "ph": "f", "bp": "e", "ts": _microseconds(arrive), "tid": thread},
    ]


def _counter(nanosecond: int, used: int) -> dict[str, Any]:
    return {
        "name": "device memory",
        "ph": "C",
        "ts": _microseconds(nanosecond),
        "pid": PROCESS,
        "tid": _FIRST_THREAD,
        "args": {"bytes": used},
    }


def _metadata(timeline: Timeline, names: Mapping[int, str]) -> list[dict[str, Any]]:
    events = [_name("process_name", {"name": f"xinfer-lab: {timeline.clock}" if timeline.clock else "xinfer-lab"})]
    for node in sorted({_node(name) for name in names.values()} - {0}):
        first = next(thread for thread, name in names.items() if _node(name) == node)
        events.append(_name("process_name", {"name": f"card {node}"}, first))
    for thread, name in names.items():
        events += [
            _name("thread_name", {"name": name}, thread),
            _name("thread_sort_index", {"sort_index": thread}, thread),
        ]
    _place(events, names)
    return events


def _place(events: Iterable[dict[str, Any]], names: Mapping[int, str]) -> None:
    """Put each event into the process of its thread's card."""
    for event in events:
        event["pid"] = PROCESS + _node(names.get(event["tid"], ""))


def _node(thread: str) -> int:
    """The card of a thread of this name: a lane's, or a further one of a lane, ``copy@1 (2)``."""
    return node_of(thread.partition(" (")[0])


def _name(what: str, args: dict[str, Any], thread: int = _FIRST_THREAD) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": PROCESS, "tid": thread, "args": args}
