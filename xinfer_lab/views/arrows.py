"""Draws fence arrows: from the signal that released a wait to that wait.

A long run has thousands of fence edges, which drawn together are a grey smear. So only edges that ended a stall are
certain of a place; the others are drawn where there is room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xinfer_lab.device.timeline import Flow, TimelineEvent
from xinfer_lab.views.bars import BAR, WAITS
from xinfer_lab.views.scale import TimeScale
from xinfer_lab.views.svg import element, escape, number

__all__ = ["choose_flows", "draw_arrows", "stalls"]

_ROOM = 14.0


def stalls(events: Sequence[TimelineEvent], scale: TimeScale) -> dict[int, float]:
    """Seconds that each wait stood still, by its record. Waits too short to be seen on ``scale`` are not in it."""
    least = scale.span / scale.width
    return {event.record: event.duration for event in events if event.kind in WAITS and event.duration >= least}


def choose_flows(flows: Sequence[Flow], stalled: Mapping[int, float], scale: TimeScale) -> list[Flow]:
    """Those of ``flows`` that can be told apart on ``scale``, in time order.

    All of them if there is room; else those that ended a wait, the longest waits first, no two of a lane within a few
    pixels.
    """
    if len(flows) * _ROOM <= scale.width:
        return sorted(flows, key=lambda flow: (flow.wait_time, flow.wait))
    chosen: list[Flow] = []
    taken: dict[str, set[int]] = {}
    for flow in sorted(flows, key=lambda flow: (-stalled.get(flow.wait, 0.0), flow.wait_time, flow.wait)):
        place = int(scale.x(flow.wait_time) / _ROOM)
        lane = taken.setdefault(flow.wait_lane, set())
        if flow.wait in stalled and lane.isdisjoint((place - 1, place, place + 1)):
            lane.add(place)
            chosen.append(flow)
    return sorted(chosen, key=lambda flow: (flow.wait_time, flow.wait))


def draw_arrows(
    flows: Sequence[Flow], stalled: Mapping[int, float], tops: Mapping[str, float], scale: TimeScale
) -> list[str]:
    """An arrow for each flow between the lanes whose bars begin at ``tops``, stronger where it ended a stall."""
    parts = []
    for flow in flows:
        if flow.signal_lane not in tops or flow.wait_lane not in tops:
            continue
        x1, x2 = scale.x(flow.signal_time), scale.x(flow.wait_time)
        from_top, to_top = tops[flow.signal_lane], tops[flow.wait_lane]
        if from_top == to_top:
            y1 = y2 = from_top
            lift1 = lift2 = -14.0
            x1, x2 = (x1 - 5, x2 + 5) if x2 - x1 < 10 else (x1, x2)
        elif from_top < to_top:
            y1, y2 = from_top + BAR, to_top
            lift1, lift2 = (y2 - y1) * 0.55, -(y2 - y1) * 0.55
        else:
            y1, y2 = from_top, to_top + BAR
            lift1, lift2 = (y2 - y1) * 0.55, -(y2 - y1) * 0.55
        path = (
            f"M{number(x1)},{number(y1)} C{number(x1)},{number(y1 + lift1)} "
            f"{number(x2)},{number(y2 + lift2)} {number(x2)},{number(y2)}"
        )
        words = f"{flow.fence} reaches {flow.value} (record {flow.signal}) and releases record {flow.wait}"
        width = 1.8 if flow.wait in stalled else 1.0
        # An edge that held nothing up matters less, and least where its signal is long past.
        opacity = None if flow.wait in stalled else 0.55 if x2 - x1 < 120 else 0.25
        parts.append(
            element(
                "path",
                f"<title>{escape(words)}</title>",
                class_="line flow",
                d=path,
                stroke_width=width,
                opacity=opacity,
                marker_end_url="tip",
            )
        )
    return parts
