"""Draws the slot map: a grid of slots over uses, with the layer that each holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xinfer_lab.device.records import Record
from xinfer_lab.views.hazard_badges import draw_badge
from xinfer_lab.views.legend import LegendItem
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.slot_history import SlotUse, slot_history
from xinfer_lab.views.strip import Strip, box, row_names
from xinfer_lab.views.svg import element, sentence, text
from xinfer_lab.views.theme import ThemeName

__all__ = ["slot_map"]

_CELL, _ROW, _GUTTER, _STRIPE = 34.0, 36.0, 124.0, 9.0
MOST_BANDS = 4
"""The map wraps into at most this many bands of columns; the rest is in the table."""


def slot_map(
    stream: Iterable[Record],
    *,
    title: str,
    first: int = 0,
    last: int | None = None,
    width: int = 960,
    theme: ThemeName = "auto",
) -> Picture:
    """Which layer is in which slot each time a slot is used, in issue order (see `slot_history`).

    ``first`` and ``last`` choose uses by number, as a slice does. A use that finds another layer than the one it
    computes, or an empty slot, is marked: that is what a ring that wraps wrongly looks like. Raises ValueError below
    320 pixels.
    """
    strip = Strip("a slot map", width, _GUTTER, _CELL)
    uses = slot_history(stream)
    slots = sorted({slot for use in uses for slot in (use.slot, *use.contents)})
    chosen = list(enumerate(uses))[first:last]
    drawn = chosen[: strip.columns * MOST_BANDS]
    alt = f"{sentence(title)} {_describe(uses, slots)}"
    notes = []
    if len(drawn) < len(uses):
        notes.append(f"{len(drawn)} of {len(uses)} uses are drawn; the table has them all (first, last choose others).")
    legend: list[LegendItem] = [(f"slot {slot}", f"slot {slot} in use") for slot in slots]
    legend += [("outline", "uploaded, not used yet"), ("band", "used before")]
    if any(use.wrong for _, use in drawn):
        legend.append(("alarm", "another layer than the one computed"))
    svg = strip.draw(
        len(drawn),
        lambda begin, end, top: _band(drawn[begin:end], slots, top),
        title=title,
        description=alt,
        legend=legend,
        band_height=34 + len(slots) * _ROW + 22,
        hues=slots,
        empty="no uses of a slot",
        theme=theme,
    )
    head = ("use", "forward pass", "computes layer", "from slot", "record", *(f"slot {slot} holds" for slot in slots))
    return Picture(title, svg, alt, head, tuple(_table_row(n, use, slots) for n, use in enumerate(uses)), tuple(notes))


def _table_row(number: int, use: SlotUse, slots: Sequence[int]) -> tuple[str, ...]:
    cells = []
    for slot in slots:
        held = use.contents.get(slot)
        state = "in use" if slot == use.slot else "used before" if held and held.used else "not used yet"
        if held is None:
            cells.append("nothing" + (" (in use: wrong)" if slot == use.slot else ""))
        else:
            wrong = ": wrong" if slot == use.slot and use.wrong else ""
            cells.append(f"{_named(held.layer)} ({state}{wrong})")
    layer = "" if use.layer is None else str(use.layer)
    return (str(number), str(use.forward), layer, str(use.slot), str(use.record), *cells)


def _named(layer: int | None) -> str:
    return "a layer" if layer is None else f"layer {layer}"


def _describe(uses: Sequence[SlotUse], slots: Sequence[int]) -> str:
    if not uses:
        return "No slot is ever used."
    passes = uses[-1].forward + 1
    layers = len({use.layer for use in uses if use.layer is not None})
    words = (
        f"{layers} {'layer' if layers == 1 else 'layers'} over {passes} forward {'pass' if passes == 1 else 'passes'} "
        f"through {len(slots)} {'slot' if len(slots) == 1 else 'slots'}, {len(uses)} uses."
    )
    wrong = [(number, use) for number, use in enumerate(uses) if use.wrong]
    if not wrong:
        return f"{words} Every use finds its own layer in its slot."
    number, use = wrong[0]
    held = use.contents.get(use.slot)
    holds = "nothing" if held is None else _named(held.layer)
    some = f"{len(wrong)} of them {'finds' if len(wrong) == 1 else 'find'} another layer than the one computed"
    where = f"it computes {_named(use.layer)} from slot {use.slot}, which holds {holds}"
    return f"{words} {some}, first use {number} (record {use.record}): {where}."


def _band(uses: Sequence[tuple[int, SlotUse]], slots: Sequence[int], top: float) -> list[str]:
    parts = [text(_GUTTER - 10, top + 24, "computes layer", font_size=13.0, text_anchor="end", class_="muted")]
    badges: list[str] = []
    body = top + 34
    parts += row_names((f"slot {slot}" for slot in slots), _GUTTER - 10, body, _ROW)
    before: int | None = None
    for column, (_, use) in enumerate(uses):
        x = _GUTTER + column * _CELL
        if use.forward != before:
            line = f"M{x - 1:.2f},{top:.2f} V{body + len(slots) * _ROW:.2f}"
            parts.append(element("path", class_="line axis", d=line, stroke_width=1.5))
            words = f"pass {use.forward}" if before is not None or column == 0 else ""
            parts.append(text(x + 4, top + 8, words, font_size=11.5, class_="muted"))
        before = use.forward
        layer = "?" if use.layer is None else use.layer
        parts.append(text(x + _CELL / 2, top + 24, layer, font_size=13.0, text_anchor="middle", class_="strong"))
        for place, slot in enumerate(slots):
            y = body + place * _ROW
            parts.append(_cell(use, slot, x, y))
            if use.wrong and slot == use.slot:
                badges.append(draw_badge(x + _CELL - 5, y + 4, "!"))
    return parts + badges


def _cell(use: SlotUse, slot: int, x: float, y: float) -> str:
    held = use.contents.get(slot)
    words = "" if held is None else "?" if held.layer is None else str(held.layer)
    inside = box(x, y, _CELL, _ROW)
    middle = x + _CELL / 2
    if slot != use.slot:
        fresh = held is not None and not held.used
        frame = element("rect", class_="outline" if fresh else "band", **inside)
        look = None if fresh else "muted"
        return frame + text(middle, y + _ROW / 2 + 5, words, font_size=14.0, class_=look, text_anchor="middle")
    parts = [
        element("rect", class_=f"s{slot}", **inside),
        element("rect", fill_url=f"slot{slot}", x=x + 2.5, y=y + _ROW - _STRIPE - 2.5, width=_CELL - 5, height=_STRIPE),
        text(middle, y + (_ROW - _STRIPE) / 2 + 5.5, words, font_size=15.0, class_="strong", text_anchor="middle"),
    ]
    if use.wrong:
        parts.append(element("rect", class_="line hazard", stroke_width=2, **inside))
    return "".join(parts)
