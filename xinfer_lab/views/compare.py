"""Draws two timelines on one time axis, one below the other: yours and the expected one."""

from __future__ import annotations

from collections.abc import Sequence

from xinfer_lab.device.timeline import Timeline
from xinfer_lab.views.figures import require_finite
from xinfer_lab.views.hazard_marks import HazardLike, hazard_sentence
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.scale import format_share, format_time
from xinfer_lab.views.slots import SlotSource, as_slot_of
from xinfer_lab.views.svg import sentence
from xinfer_lab.views.theme import ThemeName
from xinfer_lab.views.timeline_panel import Panel, time_scale
from xinfer_lab.views.timeline_svg import draw_panels
from xinfer_lab.views.timeline_words import COLUMNS, describe, headline, rows

__all__ = ["compare_timelines"]


def compare_timelines(
    yours: Timeline,
    expected: Timeline,
    *,
    title: str,
    names: tuple[str, str] = ("yours", "expected"),
    slot_of: tuple[SlotSource, SlotSource] = (None, None),
    hazards: Sequence[HazardLike] = (),
    budget: int | None = None,
    width: int = 960,
    theme: ThemeName = "auto",
) -> Picture:
    """Both timelines on the same axis, the longer one's; ``hazards`` and ``slot_of[0]`` belong to ``yours``.

    The table has the rows of both, with the name of its timeline first. Raises ValueError as `timeline_svg` does.
    """
    require_finite(yours)
    require_finite(expected)
    slots = as_slot_of(slot_of[0]), as_slot_of(slot_of[1])
    marks = hazards, ()
    timelines = yours, expected
    panels = [
        Panel(timeline, slots[i], marks[i], budget, f"{names[i]}: {headline(timeline)}", name=names[i])
        for i, timeline in enumerate(timelines)
    ]
    end = max(yours.duration, expected.duration)
    verdict = _verdict(yours.duration, expected.duration, names)
    told = " ".join(
        f"{name}: {describe(timeline, hazards=mark, budget=budget)}"
        for name, timeline, mark in zip(names, timelines, marks, strict=True)
    )
    alt = f"{sentence(title)} {verdict} {told}"
    svg = draw_panels(panels, title=title, subtitle=verdict, alt=alt, start=0.0, end=end, width=width, theme=theme)
    scale = time_scale(panels, 0.0, end, width)
    notes = [note for panel in panels for note in panel.notes(scale)]
    notes += [hazard_sentence(mark, place) for place, mark in enumerate(hazards, 1)]
    table = tuple(
        (name, *row)
        for name, timeline, slot, mark in zip(names, timelines, slots, marks, strict=True)
        for row in rows(timeline, slot, mark)
    )
    return Picture(title, svg, alt, ("timeline", *COLUMNS), table, tuple(notes))


def _verdict(yours: float, expected: float, names: tuple[str, str]) -> str:
    one, two = names
    times = f"{one} takes {format_time(yours)}, {two} {format_time(expected)}"
    # Sums of the same durations in another order may differ in their last bits.
    if abs(yours - expected) <= 1e-9 * max(yours, expected):
        return f"{times}: the same."
    word = "longer" if yours > expected else "shorter"
    difference = abs(yours - expected)
    share = f" ({format_share(difference, expected)})" if expected > 0 else ""
    return f"{times}: {one} is {format_time(difference)}{share} {word}."
