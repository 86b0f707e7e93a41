"""The bars of one lane: body and pattern by slot, waits hatched and pale, labels where there is room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xinfer_lab.device.timeline import TimelineEvent
from xinfer_lab.views.labels import short_forms
from xinfer_lab.views.scale import TimeScale
from xinfer_lab.views.slots import SlotOf
from xinfer_lab.views.svg import element, escape, fit, text

__all__ = ["BAR", "WAITS", "Bar", "bars", "draw_bars"]

BAR = 38.0
"""Height of a bar in pixels."""

WAITS = ("wait", "host_wait")
"""Kinds of events in which a lane stands still."""

_STRIPE, _LABEL, _THIN = 10.0, 14.0, 1.6


@dataclass(slots=True)
class Bar:
    """What is drawn for one event, or for several too thin to be told apart: from pixel ``left`` to ``right``."""

    left: float
    right: float
    wait: bool
    slot: int | None
    label: str
    tip: str
    events: int = 1

    @property
    def look(self) -> tuple[bool, int | None]:
        """What decides its fill."""
        return self.wait, self.slot

    def absorb(self, other: Bar) -> None:
        """Take in ``other``, which touches it. What differs between the two is no longer said."""
        self.right, self.events = max(self.right, other.right), self.events + 1
        self.wait = self.wait and other.wait
        self.slot = self.slot if self.slot == other.slot else None
        self.label = self.label if self.label == other.label else ""
        self.tip = f"{self.events} events"


def bars(events: Iterable[TimelineEvent], scale: TimeScale, slot_of: SlotOf) -> list[Bar]:
    """The bars of one lane's events. Neighbours that are all thinner than a pixel or two are drawn as one."""
    drawn: list[Bar] = []
    thin = False
    for event in sorted(events, key=lambda e: (e.start, e.record)):
        wait = event.kind in WAITS
        left, right = scale.x(event.start), scale.x(event.end)
        bar = Bar(
            left, max(right, left + _THIN), wait, None if wait else slot_of(event.record), event.label, _tip(event)
        )
        if thin and right - left < _THIN and left <= drawn[-1].right + 0.5:
            drawn[-1].absorb(bar)
        else:
            drawn.append(bar)
            thin = right - left < _THIN
    return drawn


def _tip(event: TimelineEvent) -> str:
    return f"{event.label or event.kind.replace('_', ' ')}, record {event.record}"


def _runs(drawn: list[Bar]) -> Iterator[list[Bar]]:
    """Neighbouring bars that carry the same label: one command list often holds a copy for each tensor of a layer."""
    run: list[Bar] = []
    for bar in drawn:
        if run and (bar.look != run[-1].look or bar.label != run[-1].label or bar.left > run[-1].right + 3):
            yield run
            run = []
        run.append(bar)
    if run:
        yield run


def draw_bars(drawn: list[Bar], top: float, scale: TimeScale) -> list[str]:
    """The bars as SVG, their upper edge at ``top``."""
    parts = []
    for run in _runs(drawn):
        parts += [_body(bar, top) for bar in run]
        left, right = max(run[0].left, scale.left), min(run[-1].right, scale.left + scale.width)
        if run[0].slot is not None and right - left >= 3:
            stripe = {"x": left + 1, "y": top + BAR - _STRIPE - 1, "width": right - left - 2, "height": _STRIPE}
            parts.append(element("rect", fill_url=f"slot{run[0].slot}", **stripe))
        parts.append(_label(run[0], left, right, top))
    return [part for part in parts if part]


def _label(bar: Bar, left: float, right: float, top: float) -> str:
    forms = (bar.label, "waits") if bar.wait else short_forms(bar.label)
    for size in (13.0,) if bar.wait else (14.0, 11.0):
        room = right - left - (12 if bar.wait else 6 if size > 12 else 3)
        words = fit(forms, room, size) or fit((bar.label.split(" ")[0],), room, size)
        if words:
            middle = top + (BAR if bar.slot is None else BAR - _STRIPE) / 2 + size * 0.36
            look = "muted halo" if bar.wait else None
            return text((left + right) / 2, middle, words, class_=look, font_size=size, text_anchor="middle")
    return ""


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
    tip = f"<title>{escape(bar.tip)}</title>"
    return element("rect", tip, class_=kind, **box) + (element("rect", fill_url="hatch", **box) if bar.wait else "")
