"""Draws value bars: one bar a row, its length a number; a benchmark's results side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xinfer_lab.views.legend import draw_legend
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.scale import format_time, round_step
from xinfer_lab.views.svg import document, element, escape, fit, sentence, text, text_width
from xinfer_lab.views.theme import ThemeName, definitions, stylesheet

__all__ = ["ValueBar", "value_bars"]

_BAR, _GAP, _STRIPE = 26.0, 12.0, 8.0


@dataclass(frozen=True, slots=True)
class ValueBar:
    """One row: its ``name``, its ``value``, the ``kind`` that gives it its colour, the range ``low`` to ``high`` that
    was seen, and a ``mark`` on the same axis (a bound, a prediction)."""

    name: str
    value: float
    kind: str
    low: float | None = None
    high: float | None = None
    mark: float | None = None


def value_bars(
    bars: Sequence[ValueBar],
    *,
    title: str,
    mark: str = "",
    show: Callable[[float], str] = format_time,
    width: int = 960,
    theme: ThemeName = "auto",
) -> Picture:
    """``bars`` below one another on one axis from 0 on; ``show`` writes a value, ``mark`` says what the marks are.

    Raises ValueError for a negative value or a width below 320.
    """
    if width < 320:
        raise ValueError(f"value bars need at least 320 pixels of width, not {width}")
    for bar in bars:
        if not 0 <= bar.value < float("inf"):
            raise ValueError(f"{bar.name}: a bar's value is 0 or more, not {bar.value}")
    kinds = {kind: place for place, kind in enumerate(dict.fromkeys(bar.kind for bar in bars))}
    alt = f"{sentence(title)} " + (" ".join(f"{bar.name}: {show(bar.value)}." for bar in bars) or "No bars.")
    rows = tuple(
        (bar.name, bar.kind, show(bar.value), *("" if v is None else show(v) for v in (bar.low, bar.high, bar.mark)))
        for bar in bars
    )
    svg = _draw(bars, kinds, title, alt, mark, show, width, theme)
    return Picture(title, svg, alt, ("name", "kind", "value", "least", "most", mark or "mark"), rows)


def _draw(
    bars: Sequence[ValueBar],
    kinds: dict[str, int],
    title: str,
    alt: str,
    mark: str,
    show: Callable[[float], str],
    width: int,
    theme: ThemeName,
) -> str:
    left = min(max([90.0, *(text_width(bar.name, 13.0) + 24 for bar in bars)]), width * 0.4)
    room = width - left - 110
    full = max([max(bar.value, bar.high or 0.0, bar.mark or 0.0) for bar in bars] + [0.0]) or 1.0
    parts = [text(12, 26, fit((title,), width - 24, 18.0), font_size=18.0, class_="strong")]
    legend, used = draw_legend([(f"slot {place}", kind) for kind, place in kinds.items()], 12, width - 12, 40)
    parts += legend
    top = 48 + used
    bottom = top + len(bars) * (_BAR + _GAP)
    step = round_step(full, max(2, int(room / 110)))
    for number in range(int(full / step + 1e-9) + 1):
        x = left + room * number * step / full
        parts.append(element("path", class_="line rule", d=f"M{x:.2f},{top:.2f} V{bottom:.2f}"))
        parts.append(text(x, bottom + 18, show(number * step), font_size=12.5, text_anchor="middle", class_="muted"))
    for place, bar in enumerate(bars):
        parts += _bar(bar, kinds[bar.kind], left, room / full, top + place * (_BAR + _GAP) + _GAP / 2, show)
    parts.append(element("path", class_="line axis", d=f"M{left:.2f},{top:.2f} V{bottom:.2f}"))
    height = bottom + (48 if mark else 30)
    if mark:
        parts.append(element("path", class_="line budget", d=f"M{left:.2f},{bottom + 28:.2f} v14", stroke_width=2))
        parts.append(text(left + 10, bottom + 40, mark, font_size=12.5, class_="muted"))
    paper = element("rect", class_="paper", width=width, height=height, rx=6)
    return document(
        "\n".join([paper, *parts]), width=width, height=height, title=title, description=alt,
        style=stylesheet(theme, kinds.values()), definitions=definitions(kinds.values()),
    )  # fmt: skip


def _bar(bar: ValueBar, kind: int, left: float, pixels: float, top: float, show: Callable[[float], str]) -> list[str]:
    name = fit((bar.name,), left - 16, 13.0)
    parts = [text(left - 10, top + _BAR / 2 + 5, name, font_size=13.0, text_anchor="end")]
    length = max(bar.value * pixels, 0.5)
    tip = f"<title>{escape(bar.name)}: {escape(show(bar.value))}</title>"
    parts.append(element("rect", tip, class_=f"s{kind}", x=left, y=top, width=length, height=_BAR))
    if length >= 4:
        stripe = {"x": left + 1, "y": top + _BAR - _STRIPE - 1, "width": length - 2, "height": _STRIPE}
        parts.append(element("rect", fill_url=f"slot{kind}", **stripe))
    end = length
    if bar.low is not None and bar.high is not None and bar.high > bar.low:
        ends = left + bar.low * pixels, left + bar.high * pixels
        middle = top + _BAR / 2 - 3
        parts.append(element("path", class_="line axis", d=f"M{ends[0]:.2f},{middle:.2f} H{ends[1]:.2f}"))
        end = max(end, bar.high * pixels)
    if bar.mark is not None:
        x = left + bar.mark * pixels
        parts.append(element("path", class_="line budget", d=f"M{x:.2f},{top - 3:.2f} v{_BAR + 6:.2f}", stroke_width=2))
        end = max(end, bar.mark * pixels)
    parts.append(text(left + end + 8, top + _BAR / 2 + 5, show(bar.value), font_size=13.0, class_="strong halo"))
    return parts
