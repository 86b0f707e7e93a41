"""Draws a timeline for a plain terminal: characters for each lane, a letter for each layer, memory below.

For terminals, logs and reports in which no picture can be shown. A column may hold many events; it shows the one that
fills most of it.
"""

from __future__ import annotations

import math
import string
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.timeline import Timeline, TimelineEvent
from xinfer_lab.views.figures import require_finite
from xinfer_lab.views.labels import layer_of
from xinfer_lab.views.scale import TimeScale, format_time
from xinfer_lab.views.slots import SlotOf, SlotSource, as_slot_of
from xinfer_lab.views.timeline_panel import lane_names
from xinfer_lab.views.timeline_words import headline

__all__ = ["timeline_text", "timelines_text"]

MIN_WIDTH = 40
LETTERS = string.digits + string.ascii_lowercase + string.ascii_uppercase
"""The letter of each layer: ``0`` to ``9``, then ``a`` for layer 10, ..., ``Z`` for layer 61; then from ``0`` again."""


@dataclass(frozen=True, slots=True)
class _Glyphs:
    slots: str
    plain: str
    wait: str
    idle: str
    levels: str
    frame: str
    """Left edge, corner, axis, tick, dot between words, multiplication sign."""


_BLOCKS = _Glyphs(slots="█▓▒", plain="░", wait="·", idle=" ", levels=" ▁▂▃▄▅▆▇█", frame="│└─┴·×")
_ASCII = _Glyphs(slots="#=+", plain=":", wait=".", idle=" ", levels=" 123456789", frame="|+-+-x")


def timeline_text(timeline: Timeline, width: int = 80, *, slot_of: SlotSource = None, ascii: bool | None = None) -> str:
    """``timeline`` in lines of at most ``width`` characters (at least 40), without a newline at the end.

    ``ascii=None`` uses block characters where standard output's encoding has them, ASCII otherwise.
    """
    return timelines_text([("", timeline)], width, slot_of=[slot_of], ascii=ascii)


def timelines_text(
    timelines: Sequence[tuple[str, Timeline]],
    width: int = 80,
    *,
    slot_of: Sequence[SlotSource] | None = None,
    ascii: bool | None = None,
) -> str:
    """Several named timelines below one another on one scale, so that a longer row means more time.

    ``slot_of`` has one source of slots for each timeline. The last line compares their durations with the longest
    one's.
    """
    if width < MIN_WIDTH:
        raise ValueError(f"a timeline in text needs at least {MIN_WIDTH} columns, not {width}")
    for _, timeline in timelines:
        require_finite(timeline)
    glyphs = _ASCII if (not _can_print_blocks() if ascii is None else ascii) else _BLOCKS
    sources = [as_slot_of(source) for source in (slot_of or [None] * len(timelines))]
    if len(sources) != len(timelines):
        raise ValueError(
            f"slot_of has {len(sources)} sources for {len(timelines)} timelines; give one for each, or none"
        )
    names = {name for _, timeline in timelines for name in lane_names(timeline)}
    gutter = min(max([6, *map(len, names)]), width // 4)
    end = max((timeline.duration for _, timeline in timelines), default=0.0)
    scale = TimeScale(0.0, end, 0.0, width - gutter - 2)
    lines: list[str] = []
    for (name, timeline), slots in zip(timelines, sources, strict=True):
        heading = f"{name}: {headline(timeline)}" if name else headline(timeline)
        lines += [_cut(heading, width, glyphs), *_lanes(timeline, slots, gutter, scale, glyphs)]
    lines += _axis(scale, gutter, glyphs)
    plain = any(glyphs.plain in line.partition(glyphs.frame[0])[2] for line in lines)
    lines += _key([t for _, t in timelines], sources, glyphs, width, plain=plain)
    if len(timelines) > 1:
        lines += _comparison(timelines, width, glyphs)
    return "\n".join(line.rstrip() for line in lines)


def _can_print_blocks() -> bool:
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        (_BLOCKS.slots + _BLOCKS.plain + _BLOCKS.levels + _BLOCKS.frame + "µ≥").encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _cut(words: str, width: int, glyphs: _Glyphs) -> str:
    if glyphs is _ASCII:
        words = words.replace("µ", "u").replace(" · ", " - ").encode("ascii", "replace").decode()
    shown = "".join(char if char.isprintable() else "?" for char in words)
    return shown if len(shown) <= width else shown[: width - 2] + ".."


def _lanes(timeline: Timeline, slot_of: SlotOf, gutter: int, scale: TimeScale, glyphs: _Glyphs) -> Iterable[str]:
    for lane in lane_names(timeline):
        events = [event for event in timeline.events if event.lane == lane]
        yield f"{_cut(lane, gutter, glyphs):>{gutter}} {glyphs.frame[0]}{_row(events, slot_of, scale, glyphs)}"
    if timeline.memory:
        row = _memory_row(timeline, scale, glyphs)
        yield f"{_cut('memory', gutter, glyphs):>{gutter}} {glyphs.frame[0]}{row}"


def _owners(events: Sequence[TimelineEvent], scale: TimeScale) -> list[TimelineEvent | None]:
    """For each column the event that fills most of it; None where the lane is idle for three quarters of it or more."""
    columns = int(scale.width)
    taken = [0.0] * columns
    best: list[tuple[float, TimelineEvent | None]] = [(0.0, None)] * columns
    for event in events:
        left, right = scale.x(event.start), scale.x(event.end)
        for column in range(max(0, math.floor(left)), min(columns, math.ceil(right))):
            share = min(right, column + 1) - max(left, column)
            taken[column] += share
            if share > best[column][0] + 1e-9:
                best[column] = (share, event)
    owners = [event if share > 0.25 else None for share, (_, event) in zip(taken, best, strict=True)]
    return _with_the_shortest(owners, events, scale)


def _with_the_shortest(
    owners: list[TimelineEvent | None], events: Sequence[TimelineEvent], scale: TimeScale
) -> list[TimelineEvent | None]:
    """``owners``, and each layer's work that none of them shows, where the lane else is idle or waits: a layer that
    computes for less than a column is still there."""
    shown = {event.record for event in owners if event is not None}
    for event in events:
        column = min(len(owners) - 1, max(0, math.floor(scale.x(event.start))))
        owner = owners[column] if owners else event
        if (
            event.record not in shown
            and layer_of(event.label) is not None
            and not _waits(event)
            and (owner is None or _waits(owner))
        ):
            owners[column] = event
            shown.add(event.record)
    return owners


def _waits(event: TimelineEvent) -> bool:
    return event.kind in ("wait", "host_wait")


def _row(events: Sequence[TimelineEvent], slot_of: SlotOf, scale: TimeScale, glyphs: _Glyphs) -> str:
    cells: list[str] = []
    before: TimelineEvent | None = None
    begun = Counter(
        math.floor(scale.x(event.start)) for event in events if not _waits(event) and layer_of(event.label) is not None
    )
    for event in _owners(events, scale):
        if event is None:
            cells.append(glyphs.idle)
        elif _waits(event):
            cells.append(glyphs.wait)
        else:
            slot = slot_of(event.record)
            fill = glyphs.plain if slot is None else glyphs.slots[slot % len(glyphs.slots)]
            # Where several events begin in one column, a letter would be one of many.
            crowded = event.duration < scale.span / scale.width / 2 and begun[math.floor(scale.x(event.start))] > 1
            cells.append(fill if crowded or _same_bar(before, event) else _letter(event.label) or fill)
        before = event
    return "".join(cells)


def _same_bar(before: TimelineEvent | None, event: TimelineEvent) -> bool:
    # A layer's upload may be many copies with one label: its letter is said once.
    return before is not None and (before is event or (before.label == event.label and before.kind == event.kind))


def _letter(label: str) -> str:
    layer = layer_of(label)
    return "" if layer is None else LETTERS[layer % len(LETTERS)]


def _memory_row(timeline: Timeline, scale: TimeScale, glyphs: _Glyphs) -> str:
    columns, peak = int(scale.width), max(timeline.peak_memory, 1)
    last = min(columns, max(1, math.ceil(scale.x(timeline.duration) - 1e-9)))
    top = len(glyphs.levels) - 1
    used, place, cells = 0, 0, []
    for column in range(last):
        most = used
        while place < len(timeline.memory) and scale.x(timeline.memory[place].time) < column + 1:
            used = timeline.memory[place].used
            most = max(most, used)
            place += 1
        # Some memory in use is never shown as none.
        cells.append(glyphs.levels[max(round(most / peak * top), 1 if most else 0)])
    return "".join(cells)


def _axis(scale: TimeScale, gutter: int, glyphs: _Glyphs) -> list[str]:
    columns = int(scale.width)
    line, words = [glyphs.frame[2]] * columns, [" "] * (columns + gutter + 2)
    free = 0
    for at, shown in scale.ticks(max(2, columns // 10)):
        column = min(columns - 1, round(scale.x(at)))
        shown = shown.replace("µ", "u") if glyphs is _ASCII else shown
        left = min(gutter + 2 + column, len(words) - len(shown))
        if left >= free:
            line[column] = glyphs.frame[3]
            words[left : left + len(shown)] = shown
            free = left + len(shown) + 1
    return [" " * (gutter + 1) + glyphs.frame[1] + "".join(line), "".join(words)]


def _key(
    timelines: Sequence[Timeline], sources: Sequence[SlotOf], glyphs: _Glyphs, width: int, *, plain: bool
) -> list[str]:
    work = [(e, slots) for t, slots in zip(timelines, sources, strict=True) for e in t.events if "wait" not in e.kind]
    layers = {layer for event, _ in work if (layer := layer_of(event.label)) is not None}
    used = sorted({slot for event, slots in work if (slot := slots(event.record)) is not None})
    parts = []
    if layers:
        parts.append("0-9: layer" if max(layers) < 10 else "0-9, a = 10, b = 11, ...: layer")
    for place, fill in enumerate(glyphs.slots):
        if own := [str(slot) for slot in used if slot % len(glyphs.slots) == place]:
            few = own if len(own) <= 3 else [*own[:3], ".."]
            parts.append(f"{fill} slot {', '.join(few)}")
    if plain:
        parts.append(f"{glyphs.plain} no slot")
    if any(_waits(event) for timeline in timelines for event in timeline.events):
        parts.append(f"{glyphs.wait} waits")
    peak = max((timeline.peak_memory for timeline in timelines), default=0)
    if any(timeline.memory for timeline in timelines):
        parts.append(f"memory up to {format_bytes(peak)}")
    lines, line = [], ""
    for part in parts:
        joined = f"{line}   {part}" if line else part
        if len(joined) > width:
            lines.append(line)
            joined = part
        line = joined
    return [*lines, line] if line else lines


def _comparison(timelines: Sequence[tuple[str, Timeline]], width: int, glyphs: _Glyphs) -> list[str]:
    name, longest = max(timelines, key=lambda item: item[1].duration)
    if longest.duration <= 0:
        return []
    return [
        _cut(_compared(other, timeline, name, longest), width, glyphs)
        for other, timeline in timelines
        if timeline is not longest
    ]


def _compared(name: str, timeline: Timeline, longest: str, other: Timeline) -> str:
    share = timeline.duration / other.duration
    return f"{name} takes {format_time(timeline.duration)}, {share:.2f} of the time of {longest}"
