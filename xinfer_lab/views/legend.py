"""Draws the key of a picture: what each pattern, hatching, arrow and badge means."""

from __future__ import annotations

from collections.abc import Sequence

from xinfer_lab.views.hazard_badges import draw_badge
from xinfer_lab.views.svg import element, number, text, text_width

__all__ = ["LegendItem", "draw_legend"]

LegendItem = tuple[str, str]
"""What is drawn and its words: ``"slot 3"``, ``"plain"``, ``"idle"``, ``"outline"``, ``"band"``, ``"flow"``,
``"hazard"`` or ``"alarm"``."""

_SIZE, _ROW = 13.0, 24.0


def _swatch(look: str, x: float, y: float) -> str:
    if look == "flow":
        return element(
            "path", class_="line flow", d=f"M{number(x)},{number(y + 8)} h20", stroke_width=1.8, marker_end_url="tip"
        )
    if look in ("hazard", "alarm"):
        return draw_badge(x + 11, y + 8, "1" if look == "hazard" else "!")
    box = {"x": x, "y": y + 0.5, "width": 22.0, "height": 15.0, "rx": 2.0}
    if look == "idle":
        return element("rect", class_="idle", **box) + element("rect", fill_url="hatch", **box)
    if look == "plain":
        return element("rect", class_="plain", **box)
    if look in ("outline", "band"):
        return element("rect", class_=look, **box)
    slot = look.removeprefix("slot ")
    return element("rect", class_=f"s{slot}", **box) + element("rect", fill_url=f"slot{slot}", **box)


def draw_legend(items: Sequence[LegendItem], left: float, right: float, top: float) -> tuple[list[str], float]:
    """The key from ``left`` to ``right``, from ``top`` down, on as many rows as it takes; and the height it used."""
    parts: list[str] = []
    x, y = left, top
    for look, words in items:
        width = 30 + text_width(words, _SIZE) + 16
        if x + width > right and x > left:
            x, y = left, y + _ROW
        parts.append(_swatch(look, x, y))
        parts.append(text(x + 30, y + 13, words, font_size=_SIZE, class_="muted"))
        x += width
    return parts, (y - top + _ROW) if items else 0.0
