"""Marks hazards on a timeline: both bars framed, joined by a broken line, and numbered with an octagon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xinfer_lab.device.timeline import TimelineEvent
from xinfer_lab.views.bars import BAR
from xinfer_lab.views.hazard_marks import HazardLike, hazard_sentence
from xinfer_lab.views.scale import TimeScale
from xinfer_lab.views.svg import element, escape, number, text

__all__ = ["draw_badge", "draw_hazards"]

_SIZE = 10.0


def draw_badge(x: float, y: float, words: str, tip: str = "") -> str:
    """An octagon around ``(x, y)`` with ``words`` in it: a shape that nothing else in a picture has."""
    a, b = _SIZE, _SIZE * 0.414
    corners = ((-b, -a), (b, -a), (a, -b), (a, b), (b, a), (-b, a), (-a, b), (-a, -b))
    points = " ".join(f"{number(x + dx)},{number(y + dy)}" for dx, dy in corners)
    shape = element("polygon", class_="badge", points=points)
    label = text(
        x, y + 4.5, words, class_="on-badge strong", font_size=13.0 if len(words) < 2 else 11.0, text_anchor="middle"
    )
    return element("g", (f"<title>{escape(tip)}</title>" if tip else "") + shape + label)


def draw_hazards(
    events: Sequence[TimelineEvent], hazards: Sequence[HazardLike], tops: Mapping[str, float], scale: TimeScale
) -> tuple[list[str], list[str]]:
    """What marks ``hazards`` on the bars of ``events``: the lines behind the bars, and frames and badges before them.

    A record that is no event in view gets no mark.
    """
    by_record = {event.record: event for event in events}
    behind: list[str] = []
    frames, badges = [], []
    crowd: dict[tuple[str, int], int] = {}
    for place, mark in enumerate(hazards, 1):
        ends = []
        for record in dict.fromkeys((mark.first, mark.second)):
            event = by_record.get(record)
            if event is None:
                continue
            left, right, top = scale.x(event.start), scale.x(event.end), tops[event.lane]
            width = max(right - left, 3.0)
            frames.append(
                element(
                    "rect",
                    class_="line hazard",
                    x=left - 1,
                    y=top - 2,
                    width=width + 2,
                    height=BAR + 4.0,
                    rx=3,
                    stroke_width=2,
                )
            )
            spot = (event.lane, round(left / (2 * _SIZE + 2)))
            shift = crowd.get(spot, 0)
            crowd[spot] = shift + 1
            x = min(
                max(left + min(width / 2, 12.0) + shift * (2 * _SIZE + 2), scale.left + _SIZE),
                scale.left + scale.width - _SIZE,
            )
            ends.append((x, top - 4))
            badges.append(draw_badge(x, top - 4, str(place), hazard_sentence(mark, place)))
        if len(ends) == 2:
            (x1, y1), (x2, y2) = ends
            behind.append(
                element(
                    "path",
                    class_="line hazard",
                    d=f"M{number(x1)},{number(y1)} L{number(x2)},{number(y2)}",
                    stroke_width=1.6,
                )
            )
    return behind, frames + badges
