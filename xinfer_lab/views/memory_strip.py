"""Draws the memory strip: bytes of device memory in use over time, as a step curve, with the budget."""

from __future__ import annotations

from collections.abc import Sequence

from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.timeline import MemorySample
from xinfer_lab.views.scale import TimeScale
from xinfer_lab.views.svg import element, number, text, text_width

__all__ = ["STRIP", "draw_memory_strip"]

STRIP = 84.0
"""Height of the strip in pixels."""

_BIN = 3.0


def _steps(samples: Sequence[MemorySample], scale: TimeScale) -> list[tuple[float, int]]:
    """(pixel, bytes) where the curve changes; if it changes too often to be drawn, the peak of every few pixels."""
    at = [min(max(scale.x(sample.time), scale.left), scale.left + scale.width) for sample in samples]
    if len(samples) * 2 <= scale.width:
        return [(x, sample.used) for x, sample in zip(at, samples, strict=True)]
    peaks: dict[int, int] = {}
    ends: dict[int, int] = {}
    before = 0
    for x, sample in zip(at, samples, strict=True):
        place = int((x - scale.left) / _BIN)
        # What was in use when the bin began counts too.
        peaks[place] = max(peaks.get(place, before), sample.used)
        before = ends[place] = sample.used
    for place, used in ends.items():
        peaks.setdefault(place + 1, used)
    right = scale.left + scale.width
    return [(min(scale.left + place * _BIN, right), peak) for place, peak in sorted(peaks.items())]


def draw_memory_strip(samples: Sequence[MemorySample], scale: TimeScale, top: float, budget: int | None) -> list[str]:
    """The strip with its upper edge at ``top``. A budget beyond four times the peak is stated in words, not drawn."""
    bottom, right = top + STRIP, scale.left + scale.width
    peak = max((sample.used for sample in samples), default=0)
    near = budget is not None and budget <= 4 * max(peak, 1)
    full = max(peak, budget if near and budget is not None else 0, 1)

    def y(used: float) -> float:
        return bottom - (STRIP - 20) * used / full

    curve = [f"M{number(scale.left)},{number(bottom)}"]
    for x, used in _steps(samples, scale):
        curve.append(f"H{number(x)} V{number(y(used))}")
    line = " ".join([*curve, f"H{number(right)}"])
    parts = [
        element("rect", class_="band", x=scale.left, y=top, width=scale.width, height=STRIP),
        element("path", class_="area", d=f"{line} V{number(bottom)} Z"),
        element("path", class_="line curve", d=line, stroke_width=1.6),
    ]
    gutter = scale.left - 10
    parts.append(text(gutter, top + 14, "device memory", font_size=14.0, text_anchor="end", class_="strong"))
    parts.append(
        text(gutter, top + 32, f"peak {format_bytes(peak)}", font_size=12.0, text_anchor="end", class_="muted")
    )
    if budget is not None:
        words = f"budget {format_bytes(budget)}"
        if near:
            parts.append(
                element(
                    "path",
                    class_="line budget",
                    d=f"M{number(scale.left)},{number(y(budget))} H{number(right)}",
                    stroke_width=1.3,
                )
            )
        over = peak > budget
        parts.append(
            text(gutter, top + 49, words, font_size=12.0, text_anchor="end", class_="alarm strong" if over else "muted")
        )
        if over:
            parts.append(
                text(
                    gutter,
                    top + 66,
                    f"over by {format_bytes(peak - budget)}",
                    font_size=12.0,
                    text_anchor="end",
                    class_="alarm strong",
                )
            )
        elif near:
            width = text_width("budget", 12.0)
            parts.append(
                text(
                    right - 4 - width / 2, y(budget) - 5, "budget", font_size=12.0, text_anchor="middle", class_="muted"
                )
            )
    return parts
