"""Draws the bars of one lane: body and pattern by slot, waits hatched and pale, labels where there is room."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from xinfer_lab.device.timeline import TimelineEvent
from xinfer_lab.views.labels import short_forms
from xinfer_lab.views.scale import TimeScale
from xinfer_lab.views.slots import SlotOf
from xinfer_lab.views.svg import element, escape, fit, number, text

__all__ = ["BAR", "WAITS", "Bar", "bars", "draw_bars"]

BAR = 38.0
"""Height of a bar in pixels."""

WAITS = ("wait", "host_wait")
"""Kinds of events during which a lane stands still."""

_STRIPE, _LABEL, _THIN = 10.0, 14.0, 1.6


@dataclass(slots=True)
class Bar:
    """From pixel ``left`` to ``right``: one event, or several that touch and look alike, or too thin to be told apart.

    ``cuts`` are the pixels where an event gives way to the next one of the same label.
    """

    left: float
    right: float
    wait: bool
    slot: int | None
    label: str
    records: tuple[int, int]
    events: int = 1
    cuts: list[float] = field(default_factory=list)

    @property
    def thin(self) -> bool:
        """Whether it is as thin as a bar gets."""
        return self.right - self.left <= _THIN + 1e-6

    @property
    def mixed(self) -> bool:
        """Whether it stands for events of different labels."""
        return self.events > 1 and not self.label

    def continues(self, other: Bar) -> bool:
        """Whether ``other`` has the same look and label."""
        return (self.wait, self.slot, self.label) == (other.wait, other.slot, other.label)

    def absorb(self, other: Bar) -> None:
        """Merge ``other``, which touches it. Where the two differ, the bar says nothing."""
        if self.continues(other):
            self.cuts.append(other.left)
        self.label = self.label if self.continues(other) else ""
        self.slot = self.slot if self.slot == other.slot else None
        self.wait = self.wait and other.wait
        self.right, self.events = max(self.right, other.right), self.events + 1
        self.records = self.records[0], other.records[1]

    @property
    def tip(self) -> str:
        """The tooltip."""
        first, last = self.records
        records = f"record {first}" if self.events == 1 else f"{self.events} events, records {first} to {last}"
        return f"{self.label}, {records}" if self.label else records


def bars(events: Iterable[TimelineEvent], scale: TimeScale, slot_of: SlotOf) -> list[Bar]:
    """The bars of one lane's events, from left to right.

    Adjacent events with one label are one bar: a command list often holds a copy for each tensor of a layer. Events
    thinner than a pixel or two are merged with their neighbours, if those are thin as well.
    """
    drawn: list[Bar] = []
    for event in sorted(events, key=lambda e: (e.start, e.record)):
        wait = event.kind in WAITS
        left, right = scale.x(event.start), scale.x(event.end)
        label = event.label or event.kind.replace("_", " ")
        slot = None if wait else slot_of(event.record)
        bar = Bar(left, max(right, left + _THIN), wait, slot, label, (event.record, event.record))
        last = drawn[-1] if drawn else None
        touches = last is not None and left <= last.right + 0.5
        if last and touches and (last.continues(bar) or (bar.thin and (last.thin or last.mixed))):
            last.absorb(bar)
        else:
            drawn.append(bar)
    return drawn


def draw_bars(drawn: list[Bar], top: float, scale: TimeScale) -> list[str]:
    """The bars as SVG, their upper edge at ``top``."""
    parts = []
    for bar in drawn:
        left, right = max(bar.left, scale.left), min(bar.right, scale.left + scale.width)
        parts.append(_body(bar, top))
        if bar.slot is not None and right - left >= 3:
            stripe = {"x": left + 1, "y": top + BAR - _STRIPE - 1, "width": right - left - 2, "height": _STRIPE}
            parts.append(element("rect", fill_url=f"slot{bar.slot}", **stripe))
        parts.append(_label(bar, left, right, top))
    return [part for part in parts if part]


def _label(bar: Bar, left: float, right: float, top: float) -> str:
    if bar.wait:
        size, words = 13.0, fit((bar.label, "waits"), right - left - 12, 13.0)
    else:
        forms, first = short_forms(bar.label), (bar.label.split(" ")[0],)
        size, room = 14.0, right - left - 6
        if not (words := fit(forms, room, size) or fit(first, room, size)):
            size, words = 11.0, fit(forms, right - left - 3, 11.0)
    if not words:
        return ""
    middle = top + (BAR if bar.slot is None else BAR - _STRIPE) / 2 + size * 0.36
    look = "muted halo" if bar.wait else None
    return text((left + right) / 2, middle, words, class_=look, font_size=size, text_anchor="middle")


def _body(bar: Bar, top: float) -> str:
    inset = 0.5 if bar.right - bar.left > 3 else 0.0
    width = bar.right - bar.left - 2 * inset
    box = {
        "x": bar.left + inset,
        "y": top + 0.5,
        "width": width,
        "height": BAR - 1,
        "rx": 2.5 if width > 8 else None,
        "stroke_width": 0.5 if width < 5 else None,
    }
    kind = "idle" if bar.wait else "plain" if bar.slot is None else f"s{bar.slot}"
    parts = [element("rect", f"<title>{escape(bar.tip)}</title>", class_=kind, **box)]
    if bar.wait:
        parts.append(element("rect", fill_url="hatch", **box))
    if cuts := _spaced(bar.cuts, 3.0):
        lines = " ".join(f"M{number(x)},{number(top + BAR - _STRIPE)} v{number(_STRIPE - 1)}" for x in cuts)
        parts.append(element("path", class_=f"cut {kind}", d=lines))
    return "".join(parts)


def _spaced(places: list[float], least: float) -> list[float]:
    """``places``, or nothing where two of them are too close to be told apart."""
    return places if all(b - a >= least for a, b in pairwise(places)) else []
