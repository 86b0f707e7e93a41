"""Draws the page map: a grid of frames over uses, with the page that each holds, and what moved in between."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.records import Record
from xinfer_lab.views.legend import LegendItem
from xinfer_lab.views.page_history import FrameContent, PageUse, page_history
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.strip import Strip, box, row_names
from xinfer_lab.views.svg import element, sentence, text
from xinfer_lab.views.theme import HUES, ThemeName

__all__ = ["page_map"]

_CELL, _ROW, _GUTTER, _STRIPE = 38.0, 32.0, 124.0, 7.0
MOST_BANDS, MOST_ROWS = 4, 32
"""The map wraps into at most so many bands of columns, and draws at most so many rows; the rest is in the table."""

Row = tuple[int, ...]


def page_map(
    stream: Iterable[Record],
    *,
    title: str,
    page_bytes: int,
    pool: str = "pool",
    kernels: KernelTable = KERNELS,
    first: int = 0,
    last: int | None = None,
    width: int = 960,
    theme: ThemeName = "auto",
) -> Picture:
    """Which page is in which frame each time frames are used, in issue order (see `page_history`).

    Neighbouring frames that always hold the same extent are one row. Below each column stands how many extents were
    fetched and written back since the one before. ``first`` and ``last`` choose uses by number, as a slice does. Raises
    ValueError below 320 pixels.
    """
    strip = Strip("a page map", width, _GUTTER, _CELL)
    uses = page_history(stream, page_bytes, pool=pool, kernels=kernels)
    rows = _rows(uses)
    chosen = list(enumerate(uses))[first:last]
    drawn = chosen[: strip.columns * MOST_BANDS]
    alt = f"{sentence(title)} {_describe(uses, rows)}"
    notes = []
    if len(drawn) < len(uses):
        notes.append(f"{len(drawn)} of {len(uses)} uses are drawn; the table has them all (first, last choose others).")
    if len(rows) > MOST_ROWS:
        notes.append(f"{MOST_ROWS} of {len(rows)} rows of frames are drawn; the table has them all.")
    hues, shown = _hues(uses), rows[:MOST_ROWS]
    short, used = _short(hues), sorted(set(hues.values()))
    legend: list[LegendItem] = [(f"slot {used[0]}", "in use: a colour for each extent")] if used else []
    legend += [("outline", "fetched, not used yet"), ("band", "used before")]
    if any(held.dirty for _, use in drawn for held in use.contents.values()):
        legend.append(("plain", "dirty: to be written back"))
    svg = strip.draw(
        len(drawn),
        lambda begin, end, top: _band(drawn[begin:end], shown, hues, short, top),
        title=title,
        description=alt,
        legend=legend,
        band_height=26 + len(shown) * _ROW + 52,
        hues=used,
        empty="no uses of a frame",
        theme=theme,
    )
    head = (
        "use",
        "what",
        "record",
        "fetched before",
        "written back before",
        *(f"{_frames(row)} holds" for row in rows),
    )
    return Picture(title, svg, alt, head, tuple(_table_row(n, use, rows) for n, use in enumerate(uses)), tuple(notes))


def _rows(uses: Sequence[PageUse]) -> list[Row]:
    """Frames by rows: neighbours that always hold the same and are always used together share one."""
    rows: list[list[int]] = []
    histories: list[object] = []
    for frame in sorted({frame for use in uses for frame in use.contents}):
        history = [(use.contents.get(frame), frame in use.frames) for use in uses]
        if rows and rows[-1][-1] == frame - 1 and histories[-1] == history:
            rows[-1].append(frame)
        else:
            rows.append([frame])
            histories.append(history)
    return [tuple(row) for row in rows]


def _frames(row: Row) -> str:
    return f"frame {row[0]}" if len(row) == 1 else f"frames {row[0]}-{row[-1]}"


def _short(names: Iterable[str]) -> dict[str, str]:
    """What fits into a cell, by name: its numbers, else its beginning; with its first letter as a capital where two
    would be alike."""
    found = {name: ".".join(re.findall(r"\d+", name)) or name[:4] for name in names}
    alike = Counter(found.values())
    return {name: short if alike[short] == 1 else (name[0].upper() + short)[:5] for name, short in found.items()}


def _hues(uses: Sequence[PageUse]) -> dict[str, int]:
    names = dict.fromkeys(held.name for use in uses for held in use.contents.values())
    return {name: place % len(HUES) for place, name in enumerate(names)}


def _table_row(number: int, use: PageUse, rows: Sequence[Row]) -> tuple[str, ...]:
    cells = []
    for row in rows:
        held = use.contents.get(row[0])
        if held is None:
            cells.append("nothing")
            continue
        state = "in use" if row[0] in use.frames else "used before" if held.used else "not used yet"
        cells.append(f"{held.name} ({state}{', dirty' if held.dirty else ''})")
    return (str(number), use.what, str(use.record), ", ".join(use.fetched), ", ".join(use.saved), *cells)


def _describe(uses: Sequence[PageUse], rows: Sequence[Row]) -> str:
    if not uses:
        return "No frame is ever used."
    fetched = sum(len(use.fetched) for use in uses)
    saved = sum(len(use.saved) for use in uses)
    there = sum(not use.fetched for use in uses)
    names = len(_hues(uses))
    return (
        f"{_count(names, 'extent')} through {_count(sum(map(len, rows)), 'frame')}, {_count(len(uses), 'use')}: "
        f"{_count(fetched, 'copy', 'copies')} to the device, {_count(saved, 'copy', 'copies')} back; "
        f"{_count(there, 'use comes', 'uses come')} without a copy to the device since the one before."
    )


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _band(
    uses: Sequence[tuple[int, PageUse]], rows: Sequence[Row], hues: dict[str, int], short: dict[str, str], top: float
) -> list[str]:
    parts = [text(_GUTTER - 10, top + 16, "use", font_size=13.0, text_anchor="end", class_="muted")]
    body = top + 24
    below = body + len(rows) * _ROW
    parts += row_names(map(_frames, rows), _GUTTER - 10, body, _ROW, 13.0)
    for words, y in (("fetched before", below + 16), ("written back", below + 34)):
        parts.append(text(_GUTTER - 10, y, words, font_size=12.0, text_anchor="end", class_="muted"))
    for column, (number, use) in enumerate(uses):
        x = _GUTTER + column * _CELL
        middle = x + _CELL / 2
        parts.append(text(middle, top + 16, number, font_size=12.0, text_anchor="middle", class_="muted"))
        for place, row in enumerate(rows):
            held = use.contents.get(row[0])
            parts.append(_cell(held, row[0] in use.frames, hues, short, x, body + place * _ROW))
        for moved, y in ((use.fetched, below + 16), (use.saved, below + 34)):
            if moved:
                parts.append(text(middle, y, len(moved), font_size=12.5, text_anchor="middle", class_="strong"))
    return parts


def _cell(
    held: FrameContent | None, in_use: bool, hues: dict[str, int], short: dict[str, str], x: float, y: float
) -> str:
    inside = box(x, y, _CELL, _ROW)
    if held is None:
        return element("rect", class_="band", **inside)
    hue = hues[held.name]
    words = {"font_size": 12.5, "text_anchor": "middle", "class_": "strong" if in_use else "muted"}
    parts = [element("rect", class_=f"s{hue}" if in_use else "band" if held.used else "outline", **inside)]
    if in_use:
        stripe = {"x": x + 2.5, "y": y + _ROW - _STRIPE - 2.5, "width": _CELL - 5, "height": _STRIPE}
        parts.append(element("rect", fill_url=f"slot{hue}", **stripe))
    if held.dirty:
        parts.append(element("rect", class_="plain", x=x + _CELL - 10, y=y + 3.5, width=6, height=6, rx=1.0))
    parts.append(text(x + _CELL / 2, y + (_ROW - _STRIPE) / 2 + 5, short[held.name], **words))
    return "".join(parts)
