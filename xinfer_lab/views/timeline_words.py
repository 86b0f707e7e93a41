"""Says in words and as a table what a timeline's picture shows, for readers who do not see it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.views.figures import figures
from xinfer_lab.views.hazard_marks import HazardLike
from xinfer_lab.views.scale import format_share, format_time, time_unit
from xinfer_lab.views.slots import SlotOf

__all__ = ["COLUMNS", "describe", "headline", "rows"]

COLUMNS = ("record", "lane", "what", "label", "slot", "start", "end", "takes", "waits for", "memory in use", "hazards")
"""What `rows` gives for each event."""


def headline(timeline: Timeline) -> str:
    """One line: the duration, the overlap, the clock."""
    if not timeline.events:
        return "no events"
    found = figures(timeline)
    parts = [format_time(found.duration)]
    if len(found.busy) > 1:
        share = format_share(found.overlapped, found.duration)
        overlap = f"queues overlap for {format_time(found.overlapped)} ({share})"
        parts.append(overlap if found.overlapped else "queues never overlap")
    parts.append(timeline.clock)
    return " · ".join(part for part in parts if part)


def describe(
    timeline: Timeline, *, hazards: Sequence[HazardLike] = (), budget: int | None = None, length: float = 0.0
) -> str:
    """A few sentences of content: how long, how busy, how much overlapped, where the stall is, memory, hazards.

    ``length`` is the span that shares refer to, in seconds, where it is not the timeline's own duration (an excerpt).
    """
    if not timeline.events:
        return "A timeline without any events." + _memory(timeline, budget)
    found = figures(timeline)
    whole = length or found.duration
    count = len(timeline.events)
    events = f"{count} {'event' if count == 1 else 'events'}"
    words = [f"{events} in {format_time(whole)} on {timeline.clock or 'an unnamed clock'}."]
    busy = [f"{lane} is busy for {format_time(time)} ({format_share(time, whole)})" for lane, time in found.busy]
    if len(busy) > 1:
        share = format_share(found.overlapped, whole)
        both = f"at least two queues work at once for {format_time(found.overlapped)} ({share})"
        words.append(f"{', '.join(busy)}; {both if found.overlapped else 'no two queues ever work at once'}.")
    elif busy:
        words.append(f"{busy[0]}.")
    words.append(_stall(timeline))
    return " ".join(word for word in words if word) + _memory(timeline, budget) + _hazards(hazards)


def _stall(timeline: Timeline) -> str:
    found = figures(timeline)
    if found.stall is None:
        return "Nothing waits."
    stall = found.stall
    release = f" for {found.released_by.fence} to reach {found.released_by.value}" if found.released_by else ""
    held_up = f", before {found.held_up.label or found.held_up.kind}" if found.held_up else ""
    more = (
        "" if found.stalled <= stall.duration else f", of {format_time(found.stalled)} that {stall.lane} waits in all"
    )
    times = f"{format_time(stall.duration)} from {format_time(stall.start)} on"
    return f"The longest wait: {stall.lane} stands still for {times}{release}{held_up}{more}."


def _memory(timeline: Timeline, budget: int | None) -> str:
    if not timeline.memory:
        return ""
    peak = timeline.peak_memory
    if budget is None:
        return f" Device memory peaks at {format_bytes(peak)}."
    verdict = "within" if peak <= budget else "over"
    return f" Device memory peaks at {format_bytes(peak)}, {verdict} the budget of {format_bytes(budget)}."


def _hazards(hazards: Sequence[HazardLike]) -> str:
    if not hazards:
        return ""
    kinds = ", ".join(
        f"{place} {mark.kind} (records {mark.first} and {mark.second})" for place, mark in enumerate(hazards[:5], 1)
    )
    more = f" and {len(hazards) - 5} more" if len(hazards) > 5 else ""
    return f" {len(hazards)} {'hazard' if len(hazards) == 1 else 'hazards'}: {kinds}{more}."


def _releases(timeline: Timeline) -> dict[tuple[str, int], list[str]]:
    """The fence edges by (lane, record) of the wait that each ended, or of the next event if the wait took no time."""
    lanes: dict[str, list[int]] = {}
    for event in timeline.events:
        lanes.setdefault(event.lane, []).append(event.record)
    for records in lanes.values():
        records.sort()
    releases: dict[tuple[str, int], list[str]] = {}
    for flow in timeline.flows:
        records = lanes.get(flow.wait_lane, [])
        if (place := bisect_left(records, flow.wait)) < len(records):
            words = f"{flow.fence} ≥ {flow.value} (record {flow.signal})"
            releases.setdefault((flow.wait_lane, records[place]), []).append(words)
    return releases


def rows(timeline: Timeline, slot_of: SlotOf, hazards: Sequence[HazardLike] = ()) -> tuple[tuple[str, ...], ...]:
    """One row an event, in the timeline's order, with the cells of `COLUMNS`; all times in the unit of the whole."""
    unit = time_unit(timeline.duration)
    released = _releases(timeline)
    times = [sample.time for sample in timeline.memory]
    marked: dict[int, list[str]] = {}
    for place, mark in enumerate(hazards, 1):
        for record in dict.fromkeys((mark.first, mark.second)):
            marked.setdefault(record, []).append(f"{place} {mark.kind}")

    def shown(seconds: float) -> str:
        return f"{seconds / unit.seconds:.6g} {unit.name}"

    table = []
    for event in timeline.events:
        slot = slot_of(event.record)
        sample = bisect_right(times, event.start) - 1
        table.append(
            (
                str(event.record),
                event.lane,
                event.kind.replace("_", " "),
                event.label,
                "" if slot is None else str(slot),
                shown(event.start),
                shown(event.end),
                shown(event.duration),
                "; ".join(released.get((event.lane, event.record), ())),
                format_bytes(timeline.memory[sample].used if sample >= 0 else 0) if timeline.memory else "",
                "; ".join(marked.get(event.record, ())),
            )
        )
    return tuple(table)
