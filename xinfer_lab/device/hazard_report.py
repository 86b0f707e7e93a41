"""What a hazard report says: for people, in the order in which they ask."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from xinfer_lab.device.journal import MissingEdge, Moment
from xinfer_lab.device.records import (
    HOST,
    Allocate,
    AssumeCommon,
    Copy,
    Dispatch,
    Free,
    HostRead,
    HostWait,
    HostWrite,
    Record,
    Signal,
    Span,
    Transition,
    Wait,
    queue_of,
)

if TYPE_CHECKING:
    from xinfer_lab.device.hazards import Hazard

__all__ = [
    "describe",
    "edge_lines",
    "hazard_headline",
    "hazard_report",
    "join_plain",
    "lane_name",
    "picture",
    "place",
    "source_lines",
    "source_text",
]

TITLES = {
    "read-after-write": "read after write",
    "write-after-read": "write after read",
    "write-after-write": "write after write",
    "host-write": "host write races a queue",
    "host-read": "host read before its fence",
    "use-after-free": "use after free",
    "self-wait": "wait on one's own queue",
    "early-wait": "early wait",
}

EFFECTS = {
    "read-after-write": "{second} may start before the bytes are there: it works on what {buffer} held before.",
    "write-after-read": "{second} may replace the bytes while {first} reads them, which then works on a mixture.",
    "write-after-write": "Either may come last: what {buffer} holds afterwards is left to chance.",
    "host-write": "The host changes the bytes at once; {first} may run later and take the new bytes for the old ones.",
    "host-read": "The host may see what {buffer} held before, or a mixture: {first} has perhaps not run yet.",
    "use-after-free": "The memory may belong to somebody else when it is used: wrong numbers, NaN, or a lost device.",
    "self-wait": "A queue works in order, so its own signal is over by then: the wait orders nothing between queues.",
    "early-wait": "An event that was never recorded cannot be waited for: on a GPU with events the wait does nothing.",
}
_CELL = 44
_CELL_LINE = re.compile(r"[/\\]ipykernel_\d+[/\\]\d+\.py:(\d+)$")


def source_text(where: str) -> str:
    """The text of the source line ``where`` (``file:line``), stripped; '' if it cannot be read.

    Notebook cells can be read as well: IPython enters them into `linecache`.
    """
    name, _, line = where.rpartition(":")
    if not name or not line.isdecimal():
        return ""
    linecache.checkcache(name)
    return linecache.getline(name, int(line)).strip()


def source_lines(role: str, index: int, record: Record, text_of: Callable[[str], str]) -> list[str]:
    """Two lines at most: where ``record`` was issued, and the text of that line."""
    lines = [f"  {role:<8} record {index}, {place(record)}: {lane_name(queue_of(record))}: {describe(record)}"]
    if record.where and (text := text_of(record.where)):
        lines.append(f"           | {text}")
    return lines


def place(record: Record) -> str:
    """Where ``record`` was issued. A notebook's cell is a file of the moment: its name says nothing."""
    if found := _CELL_LINE.search(record.where):
        return f"your line {found[1]}"
    return record.where or "source line unknown"


def lane_name(lane: str) -> str:
    """How a report calls a lane: ``the host``, ``the copy queue``."""
    if lane == HOST:
        return "the host"
    return f"the {lane} queue" if lane else "a queue"


def describe(record: Record) -> str:
    """What ``record`` does, in a few words."""
    match record:
        case Copy():
            return f"copy {record.dst} <- {record.src}"
        case Dispatch():
            return f"{record.kernel} ({record.label})" if record.label else record.kernel
        case Signal():
            return f"signal {record.fence} = {record.value}"
        case Wait() | HostWait():
            return f"wait {record.fence} >= {record.value}"
        case HostWrite():
            return f"write {record.dst}"
        case HostRead():
            return f"read {record.src}"
        case Free() | Allocate():
            return f"{record.op} {record.buffer}"
        case Transition():
            return f"barrier {record.buffer}: {record.before} -> {record.after}"
        case AssumeCommon():
            return f"assume {record.buffer} in COMMON"
        case _:
            return record.op


def _actor(record: Record) -> str:
    match record:
        case Dispatch():
            return f"{record.kernel} on {lane_name(record.queue)}"
        case Copy():
            return f"the copy on {lane_name(record.queue)}"
        case Transition():
            return f"the barrier on {lane_name(record.queue)}"
        case _:
            return lane_name(queue_of(record))


def _use(record: Record, span: Span | None) -> str:
    if isinstance(record, Copy) and span is not None:
        return "writing" if record.dst.overlaps(span) else "reading"
    return "using"


def hazard_headline(hazard: Hazard) -> str:
    """One line: the kind, who races with whom, and on which bytes."""
    first, second, span = hazard.first_record, hazard.second_record, hazard.span
    one, two = _actor(first), _actor(second)
    match hazard.kind:
        case "read-after-write":
            what = f"{two} reads {span} while {one} may still be writing it"
        case "write-after-read":
            what = f"{two} overwrites {span} while {one} may still be reading it"
        case "write-after-write":
            what = f"{two} writes {span} while {one} may still be writing it"
        case "host-write":
            what = f"the host writes {span} while {one} may still be {_use(first, span)} it"
        case "host-read":
            what = f"the host reads {span} before {one} has surely written it"
        case "use-after-free" if isinstance(first, Free):
            what = f"{two} uses {span or first.buffer}, but {first.buffer} was freed in record {hazard.first}"
        case "use-after-free":
            what = f"the host gives {_buffer(hazard)} back while {one} may still be {_use(first, span)} it"
        case "self-wait":
            what = f"{two} waits for {_awaited(second)}, which it signals itself in record {hazard.first}"
        case _:
            what = f"{two} waits for {_awaited(second)}, which nothing issued before it signals"
    return _plain(f"{TITLES[hazard.kind]}: {what}")


def _awaited(record: Record) -> str:
    return f"{record.fence} >= {record.value}" if isinstance(record, (Wait, HostWait)) else ""


def _buffer(hazard: Hazard) -> str:
    if hazard.span is not None:
        return hazard.span.buffer
    return getattr(hazard.second_record, "buffer", "the buffer")


def _remedy(hazard: Hazard) -> list[str]:
    """What is missing, and what to write where."""
    missing, before = hazard.missing, f"before record {hazard.second}"
    if hazard.kind == "self-wait":
        return [
            "  missing  the wait belongs to the queue that uses the result, not to the one that signals",
            "  mend     let the other queue wait for this value before it uses what was written",
        ]
    if hazard.kind == "early-wait" and missing is not None:
        reached = f"signalled up to {missing.reached} so far" if missing.reached else "never signalled so far"
        return [
            f"  missing  a signal of {missing.fence} with {missing.value} or more {before}; it was {reached}",
            "  mend     issue the signal first, then the wait; or wait for a value that was asked for already",
        ]
    if missing is None:
        return [
            "  missing  no signal and no wait: the buffer was gone already",
            f"  mend     free it after record {hazard.second}, or allocate it again {before}",
        ]
    return edge_lines(missing, hazard.first, before)


def edge_lines(missing: MissingEdge, first: int, before: str) -> list[str]:
    """Which signal or wait is missing after record ``first``, and what to write ``before`` (``"before record 7"``)."""
    waiter, signaller = lane_name(missing.waiter), lane_name(missing.signaller)
    if missing.signal is None:
        named = f" ({missing.fence} is its fence)" if missing.fence is not None else ""
        return [
            f"  missing  the signal: {signaller} signals no fence after record {first} and {before}",
            f"  mend     signal a fence on {signaller}{named} after record {first}, and let {waiter} wait for "
            f"that value {before}",
        ]
    lines = [
        f"  missing  the wait: {signaller} signals {missing.fence} = {missing.value} in record {missing.signal}, but "
        f"{waiter} does not wait for it",
    ]
    if missing.last_wait is not None and missing.last_value is not None:
        last = f"its last wait for {missing.fence}, record {missing.last_wait}, asks for {missing.last_value}"
        too = "was issued too early" if missing.last_value >= (missing.value or 0) else "is too little"
        lines.append(f"           {last}: that {too}")
    lines.append(f"  mend     {waiter} has to wait for {missing.fence} >= {missing.value} {before}")
    return lines


def _note(index: int, record: Record, moment: Moment, missing: MissingEdge | None) -> str:
    """The fence edges at ``record``."""
    if isinstance(record, Signal):
        for other, wait in moment:
            if isinstance(wait, (Wait, HostWait)) and (wait.fence, wait.value) == (record.fence, record.value):
                return f"--> {other}" if queue_of(wait) != record.queue else f"--> {other}, its own wait"
        if missing is not None and missing.signal == index:
            return f"--> nobody: {lane_name(missing.waiter)} does not wait"
    if isinstance(record, (Wait, HostWait)):
        for other, signal in moment:
            if isinstance(signal, Signal) and (signal.fence, signal.value) == (record.fence, record.value):
                return f"<-- {other}"
    return ""


def picture(moment: Moment, marks: dict[int, str], missing: MissingEdge | None = None, hole: int = -1) -> list[str]:
    """A text picture of ``moment``: one column a lane, one line a record, fence edges to the right.

    ``marks`` labels records; before record ``hole`` a line says that the wait of ``missing`` belongs there.
    """
    lanes: list[str] = []
    for index in [*marks, *(index for index, _ in moment)]:
        lane = next(queue_of(record) for other, record in moment if other == index)
        if lane not in lanes:
            lanes.append(lane)
    cells = {index: _shorten(describe(record)) for index, record in moment}
    widths = [
        max([len(lane), *(len(cells[index]) for index, record in moment if queue_of(record) == lane)]) for lane in lanes
    ]
    header = " | ".join(lane.ljust(width) for lane, width in zip(lanes, widths, strict=True))
    lines = [f"  {'record':>9}  {header} |".rstrip()]
    previous = None
    for index, record in moment:
        if previous is not None and index > previous + 1:
            lines.append(f"  {'...':>9}  " + " | ".join(" " * width for width in widths) + " |")
        previous = index
        if index == hole and missing is not None:
            awaited = f"a signal of {lane_name(missing.signaller)}"
            if missing.signal is not None:
                awaited = f"{missing.fence} >= {missing.value}"
            lines.append(f"  {'missing':>9}  here {lane_name(missing.waiter)} has to wait for {awaited}")
        row = " | ".join(
            (cells[index] if queue_of(record) == lane else "").ljust(width)
            for lane, width in zip(lanes, widths, strict=True)
        )
        note = " ".join(part for part in (marks.get(index, ""), _note(index, record, moment, missing)) if part)
        lines.append(f"  {index:>9}  {row} | {note}".rstrip())
    return lines


def hazard_report(hazard: Hazard, text_of: Callable[[str], str]) -> str:
    """The whole report of ``hazard``; the same text for the same stream. ``text_of`` gives a source line's text."""
    one, two = _actor(hazard.first_record), _actor(hazard.second_record)
    lines = [hazard_headline(hazard)]
    marks = {hazard.first: "<== first", hazard.second: "<== second"}
    if hazard.first == hazard.second:
        marks = {hazard.second: "<== here"}
    else:
        lines += source_lines("first", hazard.first, hazard.first_record, text_of)
    lines += source_lines("second" if len(marks) == 2 else "here", hazard.second, hazard.second_record, text_of)
    lines += _remedy(hazard)
    effect = EFFECTS[hazard.kind].format(first=one, second=two, buffer=_buffer(hazard))
    # A kernel's name at the beginning stays as it is.
    lines.append(f"  effect   {'The' + effect[3:] if effect.startswith('the ') else effect}")
    hole = hazard.second if hazard.kind not in ("self-wait", "early-wait") else -1
    lines += ["", *picture(hazard.moment, marks, hazard.missing, hole)]
    return join_plain(lines)


def _shorten(text: str) -> str:
    return text if len(text) <= _CELL else text[: _CELL - 3] + "..."


def _plain(line: str) -> str:
    """``line`` without anything that would break it: names come from streams, and those may come from anywhere."""
    return line if line.isprintable() else "".join(c if c.isprintable() else "?" for c in line)


def join_plain(lines: Iterable[str]) -> str:
    """``lines`` as one text, with no character in a line that would break it."""
    return "\n".join(_plain(line) for line in lines)
