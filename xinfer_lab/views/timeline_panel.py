"""Draws one timeline as a block of lanes over a memory strip; the timeline and the comparison are made of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xinfer_lab.device.node_names import node_of
from xinfer_lab.device.records import HOST
from xinfer_lab.device.timeline import Flow, Timeline
from xinfer_lab.views.arrows import choose_flows, draw_arrows, stalls
from xinfer_lab.views.bars import BAR, Bar, bars, draw_bars
from xinfer_lab.views.hazard_badges import draw_hazards
from xinfer_lab.views.hazard_marks import HazardLike
from xinfer_lab.views.memory_strip import STRIP, draw_memory_strip
from xinfer_lab.views.scale import TimeScale
from xinfer_lab.views.slots import SlotOf
from xinfer_lab.views.svg import element, fit, text, text_width

__all__ = ["Panel", "draw_axis", "draw_grid", "lane_names", "time_scale", "used_slots"]

_GAP = 30.0
_FEW = 0.1
"""Share of events that may run into each other without a remark."""


def lane_names(timeline: Timeline) -> tuple[str, ...]:
    """The timeline's lanes, then those that only its events or fence edges name; of several cards one card's lanes
    after another's, and the host's last."""
    ends = (lane for flow in timeline.flows for lane in (flow.signal_lane, flow.wait_lane))
    names = tuple(dict.fromkeys((*timeline.lanes, *(event.lane for event in timeline.events), *ends)))
    if not any(map(node_of, names)):
        return names
    return tuple(sorted(names, key=lambda name: (name == HOST, node_of(name))))


def used_slots(timeline: Timeline, slot_of: SlotOf) -> list[int]:
    """The slots that bars of ``timeline`` show, in order."""
    found = {slot_of(event.record) for event in timeline.events if event.kind in ("copy", "dispatch")}
    return sorted(slot for slot in found if slot is not None)


def time_scale(panels: Sequence[Panel], start: float, end: float, width: float) -> TimeScale:
    """The axis that ``panels`` share in a picture ``width`` pixels wide: right of the longest lane name."""
    names = {name for panel in panels for name in lane_names(panel.timeline)}
    gutter = min(max([136.0, *(text_width(name, 14.0) + 26 for name in names)]), width * 0.3)
    return TimeScale(start, end, gutter, width - gutter - 24)


@dataclass(frozen=True)
class Panel:
    """A timeline with what is to be marked on it. Where there are several panels, ``heading`` stands above the
    lanes and ``name`` begins each of its notes."""

    timeline: Timeline
    slot_of: SlotOf
    hazards: Sequence[HazardLike] = ()
    budget: int | None = None
    heading: str = ""
    name: str = ""

    @property
    def height(self) -> float:
        """Pixels that `draw` needs, from its top to its bottom."""
        lanes = len(lane_names(self.timeline)) * (BAR + _GAP)
        below = STRIP if self.timeline.memory else -_GAP / 2
        return (24 if self.heading else 0) + max(8 + lanes + below, 44)

    def flows(self, scale: TimeScale) -> list[Flow]:
        """The fence edges that are drawn on ``scale``."""
        return choose_flows(self.timeline.flows, stalls(self.timeline.events, scale), scale)

    def notes(self, scale: TimeScale) -> tuple[str, ...]:
        """What the drawing on ``scale`` leaves out."""
        remarks = []
        if (drawn := len(self.flows(scale))) < (total := len(self.timeline.flows)):
            remarks.append(
                f"{total - drawn} of {total} fence arrows are not drawn, for want of room; the table has them all."
            )
        lanes = (self._bars(name, scale) for name in lane_names(self.timeline))
        merged = sum(bar.events for lane in lanes for bar in lane if bar.mixed)
        # A head or a readback that takes a thousandth of the time needs no remark.
        if merged > len(self.timeline.events) * _FEW:
            remarks.append(f"{merged} events are too short to be told apart here; the table has them all.")
        prefix = f"{self.name}: " if self.name else ""
        return tuple(prefix + remark for remark in remarks)

    def _bars(self, lane: str, scale: TimeScale) -> list[Bar]:
        return bars((event for event in self.timeline.events if event.lane == lane), scale, self.slot_of)

    def draw(self, scale: TimeScale, top: float) -> list[str]:
        """The panel as SVG, its upper edge at ``top``; ``scale`` maps seconds to x."""
        parts: list[str] = []
        if self.heading:
            parts.append(
                text(
                    12,
                    top + 14,
                    fit((self.heading,), scale.left + scale.width - 12, 15.0),
                    font_size=15.0,
                    class_="strong halo",
                )
            )
            top += 24
        top += 8
        names = lane_names(self.timeline)
        tops = {name: top + place * (BAR + _GAP) for place, name in enumerate(names)}
        for name, lane_top in tops.items():
            parts.append(element("rect", class_="band", x=scale.left, y=lane_top, width=scale.width, height=BAR))
            shown = fit((name,), scale.left - 16, 14.0, shortest=3)
            parts.append(
                text(scale.left - 10, lane_top + BAR / 2 + 5, shown, font_size=14.0, text_anchor="end", class_="strong")
            )
        behind, before = draw_hazards(self.timeline.events, self.hazards, tops, scale)
        parts += behind
        for name, lane_top in tops.items():
            parts += draw_bars(self._bars(name, scale), lane_top, scale)
        stalled = stalls(self.timeline.events, scale)
        arrows = "".join(draw_arrows(self.flows(scale), stalled, tops, scale))
        parts.append(element("g", arrows, clip_path_url="plot"))
        parts += before
        if self.timeline.memory:
            parts += draw_memory_strip(self.timeline.memory, scale, top + len(names) * (BAR + _GAP), self.budget)
        return parts


def draw_grid(scale: TimeScale, top: float, bottom: float, most: int) -> str:
    """Fine vertical lines at the ticks."""
    lines = "".join(f"M{scale.x(at):.2f},{top:.2f} V{bottom:.2f} " for at, _ in scale.ticks(most)).rstrip()
    return element("path", class_="line rule", d=lines, stroke_width=1)


def draw_axis(scale: TimeScale, y: float, most: int) -> list[str]:
    """The time axis at ``y`` with its words below; the first one names the unit."""
    parts = [element("path", class_="line axis", d=f"M{scale.left:.2f},{y:.2f} H{scale.left + scale.width:.2f}")]
    for at, words in scale.ticks(most):
        parts.append(element("path", class_="line axis", d=f"M{scale.x(at):.2f},{y:.2f} v5"))
        parts.append(text(scale.x(at), y + 20, words, font_size=12.5, text_anchor="middle", class_="muted"))
    return parts
