"""Reduces a timeline to numbers: how long, how busy, how much overlapped, where it stood still."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from xinfer_lab.device.records import HOST
from xinfer_lab.device.timeline import Flow, MemorySample, Timeline, TimelineEvent

__all__ = ["TimelineFigures", "excerpt", "figures", "memory_at", "overlapped", "require_finite"]

_WORK = ("copy", "dispatch")


@dataclass(frozen=True, slots=True)
class TimelineFigures:
    """Times in seconds. ``busy`` has (lane, seconds with a copy or a kernel under way) for each queue that worked.

    ``overlapped`` is how long at least two queues were busy at once. ``stall`` is the longest wait of a queue or,
    where no queue waited, of the host; ``stalled`` all waiting of that lane; ``released_by`` the fence edge that
    ended the stall and ``held_up`` the work that came next on its lane.
    """

    duration: float
    busy: tuple[tuple[str, float], ...]
    overlapped: float
    stall: TimelineEvent | None
    stalled: float
    released_by: Flow | None
    held_up: TimelineEvent | None


def _union(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        elif end > start:
            merged.append((start, end))
    return merged


def _busy_spans(timeline: Timeline) -> dict[str, list[tuple[float, float]]]:
    spans: dict[str, list[tuple[float, float]]] = {}
    for event in timeline.events:
        if event.kind in _WORK and event.lane != HOST:
            spans.setdefault(event.lane, []).append((event.start, event.end))
    return {lane: _union(spans[lane]) for lane in (*timeline.lanes, *spans) if lane in spans}


def overlapped(timeline: Timeline) -> float:
    """Seconds during which at least two queues had a copy or a kernel under way."""
    edges = sorted(
        edge for spans in _busy_spans(timeline).values() for start, end in spans for edge in ((start, 1), (end, -1))
    )
    total, running, since = 0.0, 0, 0.0
    for at, change in edges:
        if running >= 2:
            total += at - since
        running, since = running + change, at
    return total


def _longest_wait(timeline: Timeline) -> TimelineEvent | None:
    for kind in ("wait", "host_wait"):
        waits = [event for event in timeline.events if event.kind == kind and event.duration > 0]
        if waits:
            return max(waits, key=lambda event: (event.duration, -event.start))
    return None


def figures(timeline: Timeline) -> TimelineFigures:
    """The figures of ``timeline``, from its events alone."""
    stall = _longest_wait(timeline)
    later = [
        e
        for e in timeline.events
        if stall and e.lane == stall.lane and e.record > stall.record and "wait" not in e.kind
    ]
    return TimelineFigures(
        duration=timeline.duration,
        busy=tuple((lane, sum(end - start for start, end in spans)) for lane, spans in _busy_spans(timeline).items()),
        overlapped=overlapped(timeline),
        stall=stall,
        stalled=timeline.busy(stall.lane, stall.kind) if stall else 0.0,
        released_by=next((flow for flow in timeline.flows if stall and flow.wait == stall.record), None),
        held_up=min(later, key=lambda event: event.record, default=None),
    )


def require_finite(timeline: Timeline) -> None:
    """Raise ValueError that names the first event without a finite start and an end no earlier than that."""
    for event in timeline.events:
        if not (math.isfinite(event.start) and math.isfinite(event.end) and event.start <= event.end):
            raise ValueError(
                f"the event of record {event.record} ({event.label or event.kind}) lasts from {event.start} to "
                f"{event.end} seconds; a view needs finite times, the end no earlier than the start: "
                "look for a rate of 0 in the GPU's figures"
            )


def memory_at(timeline: Timeline, seconds: float) -> int:
    """Bytes of device memory in use at ``seconds``; 0 before the first sample."""
    used = 0
    for sample in timeline.memory:
        if sample.time > seconds:
            break
        used = sample.used
    return used


def excerpt(timeline: Timeline, start: float, end: float) -> Timeline:
    """What happens from ``start`` to ``end`` seconds: events cut to the window, its fence edges, its memory curve."""
    if not end > start:
        raise ValueError(f"an excerpt needs start < end, not {start} to {end} seconds")
    cut = tuple(
        replace(event, start=max(event.start, start), end=min(event.end, end))
        for event in timeline.events
        if (event.start < end and event.end > start) or (event.start == event.end and start <= event.start <= end)
    )
    flows = tuple(flow for flow in timeline.flows if flow.signal_time <= end and flow.wait_time >= start)
    inside = tuple(sample for sample in timeline.memory if start < sample.time <= end)
    memory = (MemorySample(start, memory_at(timeline, start)), *inside) if timeline.memory else ()
    return replace(timeline, events=cut, flows=flows, memory=memory)
