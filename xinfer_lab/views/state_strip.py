"""Draws the state strip: a buffer's history, the device's state over the tracker's."""

from __future__ import annotations

from collections.abc import Sequence

from xinfer_lab.device.state_log import StateEntry
from xinfer_lab.views.hazard_badges import draw_badge
from xinfer_lab.views.legend import LegendItem
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.strip import Strip, box, row_names
from xinfer_lab.views.svg import element, fit, sentence, text
from xinfer_lab.views.theme import ThemeName

__all__ = ["state_strip"]

_SHORT = {
    "COMMON": "COMMON",
    "COPY_DEST": "COPY_DEST",
    "COPY_SOURCE": "COPY_SOURCE",
    "NON_PIXEL_SHADER_RESOURCE": "kernel reads",
    "UNORDERED_ACCESS": "kernel writes",
    "COPY_SOURCE|NON_PIXEL_SHADER_RESOURCE": "several reads",
}
_LOOK = {"COPY_DEST": 1, "UNORDERED_ACCESS": 5, "NON_PIXEL_SHADER_RESOURCE": 0, "COPY_SOURCE": 4}
_LEFT, _CELL, _ROW = 84.0, 120.0, 34.0
_TOLD = 20
_COLUMNS = ("step", "on", "what", "device", "tracker", "agree", "verdict")


def state_strip(entries: Sequence[StateEntry], *, title: str, width: int = 960, theme: ThemeName = "auto") -> Picture:
    """``entries`` (see `state_log`) from left to right, on as many bands as it takes; where the two accounts differ is
    marked.

    Raises ValueError below 320 pixels.
    """
    strip = Strip("a state strip", width, _LEFT, _CELL)
    used = sorted({_LOOK[name] for e in entries for name in (e.device, e.tracker) if name in _LOOK})
    alt = f"{sentence(title)} {_describe(entries)}"
    items: list[LegendItem] = [(f"slot {look}", _SHORT[name]) for name, look in _LOOK.items() if look in used]
    items += [("outline", "COMMON"), ("alarm", "device and tracker differ, or the device refuses")]
    svg = strip.draw(
        len(entries),
        lambda begin, end, top: _band(entries[begin:end], begin, top),
        title=title,
        description=alt,
        legend=items,
        band_height=42 + 2 * _ROW + 20,
        hues=used,
        empty="nothing touches this buffer",
        theme=theme,
    )
    return Picture(title, svg, alt, _COLUMNS, tuple(_table_row(n, e) for n, e in enumerate(entries, 1)))


def _table_row(number: int, entry: StateEntry) -> tuple[str, ...]:
    agree = "yes" if entry.agree else "no"
    return (str(number), entry.lane, entry.what, entry.device, entry.tracker, agree, entry.verdict or "accepted")


def _describe(entries: Sequence[StateEntry]) -> str:
    if not entries:
        return "Nothing touches this buffer."
    steps = "; ".join(
        f"{n}, {entry.lane}: {entry.what}: device {entry.device}"
        + ("" if entry.agree else f", tracker {entry.tracker}")
        + (", refused" if entry.verdict else "")
        for n, entry in enumerate(entries, 1)
        if n <= _TOLD or entry.verdict
    )
    if len(entries) > _TOLD:
        steps += f"; of the steps after {_TOLD} only those that are refused are told here, all {len(entries)} are "
        steps += "in the table"
    differ = sum(not entry.agree for entry in entries)
    said = "Device and tracker always agree." if not differ else f"Device and tracker differ {differ} times."
    return f"{steps}. {said}"


def _band(entries: Sequence[StateEntry], begin: int, top: float) -> list[str]:
    parts: list[str] = []
    badges: list[str] = []
    body = top + 42
    parts += row_names(("device", "tracker"), _LEFT - 10, body, _ROW)
    for column, entry in enumerate(entries):
        x = _LEFT + column * _CELL
        parts.append(text(x + 4, top + 14, f"{begin + column + 1}. {entry.lane}", font_size=12.0, class_="muted"))
        parts.append(text(x + 4, top + 32, fit(_forms(entry.what), _CELL - 8, 12.0), font_size=12.0))
        for row, state in enumerate((entry.device, entry.tracker)):
            parts.append(_box(state, x, body + row * _ROW))
        if entry.verdict:
            badges.append(draw_badge(x + _CELL - 10, body + 4, "!"))
        if not entry.agree:
            badges.append(draw_badge(x + _CELL - 10, body + _ROW + 4, "!"))
    return parts + badges


def _forms(what: str) -> tuple[str, ...]:
    """``what`` happens, and shorter ways to say it: a barrier's state before, since the boxes show the one after."""
    kind, _, states = what.partition(" ")
    if kind != "barrier":
        return (what,)
    before = states.partition(" -> ")[0]
    short = _SHORT.get(before, before)
    return what, f"barrier from {short}", f"from {short}"


def _box(state: str, x: float, y: float) -> str:
    look = _LOOK.get(state)
    frame = element("rect", class_="outline" if look is None else f"s{look}", **box(x, y, _CELL, _ROW))
    words = fit((_SHORT.get(state, state),), _CELL - 26, 12.5, shortest=4)
    return frame + text(x + 8, y + _ROW / 2 + 5, words, font_size=12.5)
