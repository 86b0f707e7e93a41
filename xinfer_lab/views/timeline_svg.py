"""Draws the timeline picture: lanes, fence arrows, hazards, and memory on one time axis."""

from __future__ import annotations

from collections.abc import Sequence

from xinfer_lab.device.timeline import Timeline
from xinfer_lab.views.figures import excerpt, require_finite
from xinfer_lab.views.hazard_marks import HazardLike, hazard_sentence
from xinfer_lab.views.legend import LegendItem, draw_legend
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.scale import TimeScale, format_time
from xinfer_lab.views.slots import SlotSource, as_slot_of
from xinfer_lab.views.svg import document, element, fit, sentence, text
from xinfer_lab.views.theme import ThemeName, definitions, stylesheet
from xinfer_lab.views.timeline_panel import Panel, draw_axis, draw_grid, time_scale, used_slots
from xinfer_lab.views.timeline_words import COLUMNS, describe, headline, rows

__all__ = ["draw_panels", "timeline_svg"]

MIN_WIDTH = 320


def timeline_svg(
    timeline: Timeline,
    *,
    title: str,
    width: int = 960,
    hazards: Sequence[HazardLike] = (),
    slot_of: SlotSource = None,
    budget: int | None = None,
    start: float | None = None,
    end: float | None = None,
    theme: ThemeName = "auto",
) -> Picture:
    """``timeline`` as a picture ``width`` pixels wide (at least 320).

    ``slot_of`` tells the slot of a record by its index (see `slots_of`); ``budget`` is bytes of device memory;
    ``start`` and ``end`` (seconds) show an excerpt; ``hazards`` are numbered in their order. Raises ValueError for an
    empty excerpt, a width below 320, or an event of infinite length.
    """
    require_finite(timeline)
    slot = as_slot_of(slot_of)
    shown, note = timeline, ""
    first, last = start if start is not None else 0.0, end if end is not None else timeline.duration
    if start is not None or end is not None:
        shown = excerpt(timeline, first, last)
        note = f"Excerpt from {format_time(first)} to {format_time(last)} of {format_time(timeline.duration)}."
    panel = Panel(shown, slot, hazards, budget)
    words = headline(shown) if not note else f"{note.removesuffix('.')} · {timeline.clock}"
    alt = f"{sentence(title)} {note} " if note else f"{sentence(title)} "
    alt += describe(shown, hazards=hazards, budget=budget, length=last - first)
    svg = draw_panels([panel], title=title, subtitle=words, alt=alt, start=first, end=last, width=width, theme=theme)
    notes = (
        *panel.notes(time_scale([panel], first, last, width)),
        *(hazard_sentence(mark, place) for place, mark in enumerate(hazards, 1)),
    )
    return Picture(title, svg, alt, COLUMNS, rows(shown, slot, hazards), notes)


def draw_panels(
    panels: Sequence[Panel],
    *,
    title: str,
    subtitle: str,
    alt: str,
    start: float,
    end: float,
    width: int,
    theme: ThemeName,
) -> str:
    """The SVG of ``panels`` one below the other, on one axis from ``start`` to ``end`` seconds."""
    if width < MIN_WIDTH:
        raise ValueError(f"a timeline needs at least {MIN_WIDTH} pixels of width, not {width}; show an excerpt instead")
    scale = time_scale(panels, start, end, width)
    most = max(2, int(scale.width / 90))
    slots = sorted({slot for panel in panels for slot in used_slots(panel.timeline, panel.slot_of)})
    parts = [
        text(12, 26, fit((title,), width - 24, 18.0), font_size=18.0, class_="strong"),
        text(12, 47, fit((subtitle,), width - 24, 13.0), font_size=13.0, class_="muted"),
    ]
    legend, used = draw_legend(_legend(panels, slots, scale), 12, width - 12, 60)
    parts += legend
    top = 60 + used + 8
    bottom = top + sum(panel.height for panel in panels) + 26 * (len(panels) - 1)
    inside: list[str] = []
    y = top
    for place, panel in enumerate(panels):
        inside += panel.draw(scale, y)
        y += panel.height + 26
        if place < len(panels) - 1:
            inside.append(element("path", class_="line rule", d=f"M12,{y - 16:.2f} H{width - 12}"))
    parts += [draw_grid(scale, top, bottom, most), *inside, *draw_axis(scale, bottom, most)]
    if not any(panel.timeline.events for panel in panels):
        parts.append(text(width / 2, top + 30, "no events", font_size=14.0, text_anchor="middle", class_="muted"))
    height = bottom + 32
    paper = element("rect", class_="paper", width=width, height=height, rx=6)
    return document(
        "\n".join([paper, *parts]),
        width=width,
        height=height,
        title=title,
        description=alt,
        style=stylesheet(theme, slots),
        definitions=definitions(slots) + _plot_area(scale, top, bottom),
    )


def _plot_area(scale: TimeScale, top: float, bottom: float) -> str:
    """Where arrows may be drawn: in an excerpt they would leave the axis."""
    area = element("rect", x=scale.left - 6, y=top, width=scale.width + 12, height=bottom - top)
    return element("clipPath", area, id="plot")


def _legend(panels: Sequence[Panel], slots: Sequence[int], scale: TimeScale) -> list[LegendItem]:
    events = [(panel, event) for panel in panels for event in panel.timeline.events]
    items = [(f"slot {slot}", f"slot {slot}") for slot in slots]
    if any(e.kind not in ("wait", "host_wait") and panel.slot_of(e.record) is None for panel, e in events):
        items.append(("plain", "no slot" if slots else "at work"))
    if any(event.kind in ("wait", "host_wait") for _, event in events):
        items.append(("idle", "waits for a fence"))
    if any(panel.flows(scale) for panel in panels):
        items.append(("flow", "signal releases wait"))
    if any(panel.hazards for panel in panels):
        items.append(("hazard", "hazard, on both bars"))
    return items
