"""Steps through a run: one command in words, the timeline up to it, and what lies in the slots then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xinfer_lab.device.records import Copy, Dispatch, HostRead, HostWait, HostWrite, Record, Signal, Wait
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.views.explorer import Explorer, HasHtml, Knob, explore
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.slot_map import slot_map
from xinfer_lab.views.slots import slot_of_record, slots_of
from xinfer_lab.views.svg import sentence
from xinfer_lab.views.timeline_panel import Panel
from xinfer_lab.views.timeline_svg import draw_panels
from xinfer_lab.views.timeline_words import COLUMNS, describe, headline, rows

__all__ = ["moment", "said", "step_through"]


def said(record: Record) -> str:
    """A command in words; empty for a record that asks nothing of a queue or the host (allocations, bookkeeping)."""
    match record:
        case Copy():
            slot = slot_of_record(record)
            into = "" if slot is None else f" into slot {slot}"
            return f"{record.queue} queue: {record.label or f'copy {record.src.buffer}'}{into}"
        case Dispatch():
            slot = slot_of_record(record)
            return (
                f"{record.queue} queue: {record.label or record.kernel}{'' if slot is None else f' from slot {slot}'}"
            )
        case Signal():
            return f"{record.queue} queue: signal {record.fence} = {record.value}, when all before it here is done"
        case Wait():
            return f"{record.queue} queue: wait until {record.fence} is {record.value} or more"
        case HostWait():
            return f"host: wait until {record.fence} is {record.value} or more"
        case HostWrite():
            return f"host: write {record.source.name} into {record.dst.buffer}"
        case HostRead():
            return f"host: read {record.src.buffer}"
        case _:
            return ""


def moment(stream: CommandStream, timeline: Timeline, record: int, *, title: str) -> tuple[Picture, Picture]:
    """The timeline with what was submitted up to ``record`` (an index; -1 for nothing) on the whole run's axis, and the
    slots then."""
    begun = replace(
        timeline,
        events=tuple(event for event in timeline.events if event.record <= record),
        flows=tuple(flow for flow in timeline.flows if flow.wait <= record),
        memory=(),
    )
    slot, length = slots_of(stream), timeline.duration
    done = said(stream.records[record]) if record >= 0 else "nothing is submitted yet"
    words = f"{sentence(title)} {sentence(done or f'Record {record}')} "
    words += describe(begun, hazards=(), budget=None, length=length)
    svg = draw_panels(
        [Panel(begun, slot)], title=title, subtitle=headline(begun), alt=words, start=0.0, end=length, width=960,
        theme="auto",
    )  # fmt: skip
    line = Picture(title, svg, words, COLUMNS, rows(begun, slot, ()))
    slots = slot_map(list(stream)[: record + 1], title="The slots at their last uses so far", first=-12)
    return line, replace(slots, notes=())


def step_through(
    stream: CommandStream, timeline: Timeline, *, title: str, first: int = 0, last: int | None = None
) -> Explorer:
    """A slider over the commands of ``stream`` from record ``first`` up to ``last`` (the end if None), in the order
    in which the program submitted them; ``timeline`` says when each ran.

    It begins before the first command and plays; the picture without a kernel shows the whole run. The arrow keys go
    one command on or back, Home and End to either end, the space bar plays. Raises ValueError where there is no command
    to show.
    """
    places: Sequence[int] = [
        index
        for index, record in enumerate(stream)
        if index >= first and (last is None or index < last) and said(record)
    ]
    if not places:
        raise ValueError(f"the stream has no command from record {first} on")

    def show(command: int) -> list[HasHtml | str]:
        if not command:
            return ["Nothing was submitted yet.", *moment(stream, timeline, places[0] - 1, title=title)]
        record = places[command - 1]
        words = f"Command {command} of {len(places)} (record {record}): {said(stream.records[record])}."
        return [words, *moment(stream, timeline, record, title=title)]

    return explore(show, command=Knob("command", range(len(places) + 1), stored=len(places), plays=True))
