"""The order strip: the copies and kernels of a run's layers, one after the other as a device took them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xinfer_lab.device.timeline import TimelineEvent
from xinfer_lab.views.hazard_badges import draw_badge
from xinfer_lab.views.hazard_marks import HazardLike
from xinfer_lab.views.labels import layer_of, short_forms
from xinfer_lab.views.legend import LegendItem, draw_legend
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.slots import SlotSource, as_slot_of
from xinfer_lab.views.svg import document, element, fit, sentence, text
from xinfer_lab.views.theme import ThemeName, definitions, stylesheet

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
    if width < 320:
        raise ValueError(f"an order strip needs at least 320 pixels of width, not {width}")
    turns = _turns(events, order, as_slot_of(slot_of), hazards)
    lanes = sorted({turn.lane for turn in turns})
    slots = sorted({turn.slot for turn in turns if turn.slot is not None})
    alt = f"{sentence(title)} {_describe(turns)}"
    items: list[LegendItem] = [(f"slot {slot}", f"slot {slot}") for slot in slots]
    if any(turn.wrong for turn in turns):
        items.append(("alarm", "came before what it has to follow"))
    parts = [text(12, 26, fit((title,), width - 24, 18.0), font_size=18.0, class_="strong")]
    legend, top = draw_legend(items, 12, width - 12, 40)
    parts += legend
    top += 46
    across = max(1, int((width - _LEFT - 12) / _CELL))
    for begin in range(0, len(turns), across):
        parts += _band(turns[begin : begin + across], begin, lanes, top)
        top += 22 + len(lanes) * _ROW + 14
    svg = document(
        "\n".join([element("rect", class_="paper", width=width, height=top, rx=6), *parts]),
        width=width,
        height=top,
        title=title,
        description=alt,
        style=stylesheet(theme, slots),
        definitions=definitions(slots),
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
    parts, badges = [], []
    body = top + 20
    for row, lane in enumerate(lanes):
        y = body + row * _ROW
        right = len(turns) * _CELL
        parts.append(element("rect", class_="band", x=_LEFT, y=y + 1.5, width=right, height=_ROW - 3, rx=3.0))
        parts.append(text(_LEFT - 10, y + _ROW / 2 + 5, lane, font_size=14.0, text_anchor="end", class_="strong"))
    for column, turn in enumerate(turns):
        x, y = _LEFT + column * _CELL, body + lanes.index(turn.lane) * _ROW
        middle = x + _CELL / 2
        number = begin + column + 1
        parts.append(text(middle, top + 14, number, font_size=12.0, class_="muted", text_anchor="middle"))
        box = {"x": x + 1.5, "y": y + 1.5, "width": _CELL - 3, "height": _ROW - 3, "rx": 3.0}
        parts.append(element("rect", class_="plain" if turn.slot is None else f"s{turn.slot}", **box))
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
