"""The slot map: a grid of slots over uses, with the layer that each holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xinfer_lab.device.records import Record
from xinfer_lab.views.hazard_badges import draw_badge
from xinfer_lab.views.legend import LegendItem, draw_legend
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.slot_history import SlotUse, slot_history
from xinfer_lab.views.svg import document, element, fit, sentence, text
from xinfer_lab.views.theme import ThemeName, definitions, stylesheet

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
    if width < 320:
        raise ValueError(
            f"a slot map needs at least 320 pixels of width, not {width}; choose fewer uses with first and last"
        )
    uses = slot_history(stream)
    slots = sorted({slot for use in uses for slot in (use.slot, *use.contents)})
    chosen = list(enumerate(uses))[first:last]
    columns = int((width - _GUTTER - 16) / _CELL)
    drawn = chosen[: columns * MOST_BANDS]
    alt = f"{sentence(title)} {_describe(uses, slots)}"
    notes = []
    if len(drawn) < len(uses):
        notes.append(f"{len(drawn)} of {len(uses)} uses are drawn; the table has them all (first, last choose others).")
    svg = _draw(drawn, slots, columns, title, alt, width, theme)
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


def _draw(
    drawn: Sequence[tuple[int, SlotUse]],
    slots: Sequence[int],
    columns: int,
    title: str,
    alt: str,
    width: int,
    theme: ThemeName,
) -> str:
    parts = [text(12, 26, fit((title,), width - 24, 18.0), font_size=18.0, class_="strong")]
    items: list[LegendItem] = [(f"slot {slot}", f"slot {slot} in use") for slot in slots]
    items += [("outline", "uploaded, not used yet"), ("band", "used before")]
    if any(use.wrong for _, use in drawn):
        items.append(("alarm", "another layer than the one computed"))
    legend, used = draw_legend(items if drawn else [], 12, width - 12, 40)
    parts += legend
    top = 40 + used + 8
    for begin in range(0, len(drawn), columns):
        parts += _band(drawn[begin : begin + columns], slots, top)
        top += 34 + len(slots) * _ROW + 22
    if not drawn:
        parts.append(text(12, top + 12, "no uses of a slot", font_size=14.0, class_="muted"))
        top += 30
    height = top - 6
    paper = element("rect", class_="paper", width=width, height=height, rx=6)
    return document(
        "\n".join([paper, *parts]),
        width=width,
        height=height,
        title=title,
        description=alt,
        style=stylesheet(theme, slots),
        definitions=definitions(slots),
    )


def _band(uses: Sequence[tuple[int, SlotUse]], slots: Sequence[int], top: float) -> list[str]:
    parts = [text(_GUTTER - 10, top + 24, "computes layer", font_size=13.0, text_anchor="end", class_="muted")]
    badges: list[str] = []
    body = top + 34
    for place, slot in enumerate(slots):
        y = body + place * _ROW + _ROW / 2 + 4
        parts.append(text(_GUTTER - 10, y, f"slot {slot}", font_size=14.0, text_anchor="end", class_="strong"))
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
    box = {"x": x + 1.5, "y": y + 1.5, "width": _CELL - 3, "height": _ROW - 3, "rx": 3.0}
    middle = x + _CELL / 2
    if slot != use.slot:
        fresh = held is not None and not held.used
        frame = element("rect", class_="outline" if fresh else "band", **box)
        look = None if fresh else "muted"
        return frame + text(middle, y + _ROW / 2 + 5, words, font_size=14.0, class_=look, text_anchor="middle")
    parts = [
        element("rect", class_=f"s{slot}", **box),
        element("rect", fill_url=f"slot{slot}", x=x + 2.5, y=y + _ROW - _STRIPE - 2.5, width=_CELL - 5, height=_STRIPE),
        text(middle, y + (_ROW - _STRIPE) / 2 + 5.5, words, font_size=15.0, class_="strong", text_anchor="middle"),
    ]
    if use.wrong:
        parts.append(element("rect", class_="line hazard", stroke_width=2, **box))
    return "".join(parts)
