"""How records are told in words and letters: what each does and where it was issued, and a picture of a moment.

Reports of hazards, of state faults and of the tracker share these.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterable

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
    Transition,
    Wait,
    queue_of,
)

__all__ = [
    "describe",
    "edge_lines",
    "join_plain",
    "lane_name",
    "picture",
    "place",
    "plain",
    "source_lines",
    "source_text",
]

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


def _shorten(text: str) -> str:
    return text if len(text) <= _CELL else text[: _CELL - 3] + "..."


def plain(line: str) -> str:
    """``line`` without anything that would break it: names come from streams, and those may come from anywhere."""
    return line if line.isprintable() else "".join(c if c.isprintable() else "?" for c in line)


def join_plain(lines: Iterable[str]) -> str:
    """``lines`` as one text, with no character in a line that would break it."""
    return "\n".join(plain(line) for line in lines)
