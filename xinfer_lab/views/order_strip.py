"""Draws the order strip: the copies and kernels of a run's layers in the order in which a device did them.

A timeline shows one order, and a hazard may have gone well in it. This picture shows an order in which it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xinfer_lab.device.timeline import TimelineEvent
from xinfer_lab.views.hazard_badges import draw_badge
from xinfer_lab.views.hazard_marks import HazardLike
from xinfer_lab.views.labels import layer_of, short_forms
from xinfer_lab.views.legend import LegendItem
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.slots import SlotSource, as_slot_of
from xinfer_lab.views.strip import Strip, box, row_names
from xinfer_lab.views.svg import element, fit, sentence, text
from xinfer_lab.views.theme import ThemeName

__all__ = ["order_strip"]

_LEFT, _CELL, _ROW, _STRIPE = 70.0, 44.0, 34.0, 8.0
_COLUMNS = ("place", "queue", "what", "slot", "records", "came out wrong")


@dataclass(slots=True)
class _Turn:
    """What a queue did at a stretch for one layer; ``wrong`` if it overtook what a hazard has before it."""

    lane: str
    label: str
    slot: int | None
    records: list[int]
    wrong: bool = False


def order_strip(
    events: Iterable[TimelineEvent],
    order: Sequence[int],
    *,
    title: str,
    slot_of: SlotSource = None,
    hazards: Sequence[HazardLike] = (),
    width: int = 800,
    theme: ThemeName = "auto",
) -> Picture:
    """The copies and kernels of layers among ``events``, from left to right in ``order``: record numbers, each where it
    was done.

    What is marked came before a record that was issued before it and that it races with: this order shows that hazard.
    Raises ValueError below 320 pixels.
    """
    strip = Strip("an order strip", width, _LEFT, _CELL)
    turns = _turns(events, order, as_slot_of(slot_of), hazards)
    lanes = sorted({turn.lane for turn in turns})
    slots = sorted({turn.slot for turn in turns if turn.slot is not None})
    alt = f"{sentence(title)} {_describe(turns)}"
    items: list[LegendItem] = [(f"slot {slot}", f"slot {slot}") for slot in slots]
    if any(turn.wrong for turn in turns):
        items.append(("alarm", "came before what it has to follow"))
    svg = strip.draw(
        len(turns),
        lambda begin, end, top: _band(turns[begin:end], begin, lanes, top),
        title=title,
        description=alt,
        legend=items,
        band_height=22 + len(lanes) * _ROW + 14,
        hues=slots,
        empty="no layer was copied or computed",
        theme=theme,
    )
    return Picture(title, svg, alt, _COLUMNS, tuple(_table_row(place, turn) for place, turn in enumerate(turns, 1)))


def _turns(
    events: Iterable[TimelineEvent], order: Sequence[int], slot_of: SlotSource, hazards: Sequence[HazardLike]
) -> list[_Turn]:
    known = {e.record: e for e in events if e.kind in ("copy", "dispatch") and layer_of(e.label) is not None}
    place = {record: number for number, record in enumerate(order)}
    overtook = {
        mark.second
        for mark in hazards
        if mark.first in place and mark.second in place and place[mark.second] < place[mark.first]
    }
    turns: list[_Turn] = []
    for record in order:
        if (event := known.get(record)) is None:
            continue
        turn = _Turn(event.lane, event.label, as_slot_of(slot_of)(record), [record], record in overtook)
        last = turns[-1] if turns else None
        if last and (last.lane, last.label, last.slot) == (turn.lane, turn.label, turn.slot):
            last.records.append(record)
            last.wrong = last.wrong or turn.wrong
        else:
            turns.append(turn)
    return turns


def _band(turns: Sequence[_Turn], begin: int, lanes: Sequence[str], top: float) -> list[str]:
    parts: list[str] = []
    badges: list[str] = []
    body = top + 20
    parts += row_names(lanes, _LEFT - 10, body, _ROW)
    for row in range(len(lanes)):
        y, right = body + row * _ROW, len(turns) * _CELL
        parts.append(element("rect", class_="band", x=_LEFT, y=y + 1.5, width=right, height=_ROW - 3, rx=3.0))
    for column, turn in enumerate(turns):
        x, y = _LEFT + column * _CELL, body + lanes.index(turn.lane) * _ROW
        middle = x + _CELL / 2
        number = begin + column + 1
        parts.append(text(middle, top + 14, number, font_size=12.0, class_="muted", text_anchor="middle"))
        look = "plain" if turn.slot is None else f"s{turn.slot}"
        parts.append(element("rect", class_=look, **box(x, y, _CELL, _ROW)))
        if turn.slot is not None:
            stripe = {"x": x + 2.5, "y": y + _ROW - _STRIPE - 2.5, "width": _CELL - 5, "height": _STRIPE}
            parts.append(element("rect", fill_url=f"slot{turn.slot}", **stripe))
        words = fit(short_forms(turn.label), _CELL - (22 if turn.wrong else 6), 13.0)
        parts.append(text(middle - (7 if turn.wrong else 0), y + 19, words, font_size=13.0, text_anchor="middle"))
        if turn.wrong:
            badges.append(draw_badge(x + _CELL - 9, y + 4, "!", f"{_said(turn)}: too early"))
    return parts + badges


def _said(turn: _Turn) -> str:
    layer = layer_of(turn.label)
    return f"{turn.lane}: layer {layer}" + ("" if turn.slot is None else f" in slot {turn.slot}")


def _describe(turns: Sequence[_Turn]) -> str:
    if not turns:
        return "No layer was copied or computed."
    steps = "; ".join(_said(turn) + (", too early" if turn.wrong else "") for turn in turns)
    wrong = sum(turn.wrong for turn in turns)
    said = f"{wrong} of {len(turns)} came before what they have to follow." if wrong else "None came too early."
    return f"In this order: {steps}. {said}"


def _table_row(place: int, turn: _Turn) -> tuple[str, ...]:
    first, last = turn.records[0], turn.records[-1]
    records = str(first) if first == last else f"{first} to {last}"
    slot = "" if turn.slot is None else str(turn.slot)
    return (str(place), turn.lane, f"layer {layer_of(turn.label)}", slot, records, "yes" if turn.wrong else "no")
