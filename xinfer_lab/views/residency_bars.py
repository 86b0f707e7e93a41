"""Draws residency bars: what occupies device memory, one stacked bar a plan, against one or several budgets."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xinfer_lab.device.errors import format_bytes
from xinfer_lab.views.legend import draw_legend
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.scale import byte_ticks, format_share
from xinfer_lab.views.svg import document, element, escape, fit, sentence, text, text_width
from xinfer_lab.views.theme import ThemeName, definitions, stylesheet

__all__ = ["ResidencyBar", "residency_bars"]

_BAR, _GAP, _STRIPE = 42.0, 18.0, 11.0


@dataclass(frozen=True, slots=True)
class ResidencyBar:
    """One plan: its name, and bytes of device memory by what holds them (``"embedding"``, ``"slots"``, ...), from
    left to right."""

    name: str
    parts: Mapping[str, int]

    @property
    def total(self) -> int:
        """Bytes of all parts together."""
        return sum(self.parts.values())


def residency_bars(
    bars: Sequence[ResidencyBar],
    *,
    title: str,
    budgets: Mapping[str, int] | None = None,
    width: int = 960,
    theme: ThemeName = "auto",
) -> Picture:
    """``bars`` below one another on one axis of bytes, with a line for each of ``budgets`` (name -> bytes).

    Where a bar fits none of the budgets, the part above the largest one is framed. A part has the same colour and
    pattern in every bar. Raises ValueError for a negative size or a width below 320.
    """
    limits = dict(sorted((budgets or {}).items(), key=lambda item: (item[1], item[0])))
    if width < 320:
        raise ValueError(f"residency bars need at least 320 pixels of width, not {width}")
    for bar in bars:
        for part, size in bar.parts.items():
            if size < 0:
                raise ValueError(f"{part} of {bar.name} has {size} bytes; a size is 0 or more")
    kinds = {part: place for place, part in enumerate(dict.fromkeys(part for bar in bars for part in bar.parts))}
    alt = f"{sentence(title)} " + (" ".join(_sentence(bar, limits) for bar in bars) or "No bars.")
    svg = _draw(bars, limits, kinds, title, alt, width, theme)
    rows = []
    for bar in bars:
        rows += [
            (bar.name, part, format_bytes(size), str(size), format_share(size, bar.total), "")
            for part, size in bar.parts.items()
        ]
        rows.append((bar.name, "total", format_bytes(bar.total), str(bar.total), "100 %", _verdicts(bar, limits)))
    return Picture(title, svg, alt, ("plan", "part", "size", "bytes", "share", "budgets"), tuple(rows))


def _verdicts(bar: ResidencyBar, limits: Mapping[str, int]) -> str:
    words = []
    for name, limit in limits.items():
        left = limit - bar.total
        words.append(
            f"fits {name} ({format_bytes(left)} free)" if left >= 0 else f"over {name} by {format_bytes(-left)}"
        )
    return "; ".join(words)


def _sentence(bar: ResidencyBar, limits: Mapping[str, int]) -> str:
    parts = ", ".join(f"{part} {format_bytes(size)}" for part, size in bar.parts.items())
    verdict = f"; {_verdicts(bar, limits)}" if limits else ""
    return f"{bar.name} takes {format_bytes(bar.total)} ({parts or 'nothing'}){verdict}."


def _unit(top: float) -> tuple[str, int]:
    units = [("B", 1), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30), ("TiB", 2**40)]
    return next((unit for unit in reversed(units) if top >= unit[1]), units[0])


def _draw(
    bars: Sequence[ResidencyBar],
    limits: Mapping[str, int],
    kinds: Mapping[str, int],
    title: str,
    alt: str,
    width: int,
    theme: ThemeName,
) -> str:
    left = min(max([110.0, *(text_width(bar.name, 14.0) + 26 for bar in bars)]), width * 0.32)
    room = width - left - 96
    full = max([bar.total for bar in bars] + list(limits.values()) + [1])
    parts = [text(12, 26, fit((title,), width - 24, 18.0), font_size=18.0, class_="strong")]
    legend, used = draw_legend([(f"slot {place}", part) for part, place in kinds.items()], 12, width - 12, 40)
    parts += legend
    top = 48 + used + 20 * len(limits)
    bottom = top + len(bars) * (_BAR + _GAP)
    name, unit = _unit(full)
    for tick in byte_ticks(full, max(2, int(room / 110))):
        x = left + room * tick / full
        parts.append(element("path", class_="line rule", d=f"M{x:.2f},{top:.2f} V{bottom:.2f}"))
        parts.append(
            text(x, bottom + 18, f"{tick / unit:g} {name}", font_size=12.5, text_anchor="middle", class_="muted")
        )
    parts += _budget_lines(limits, left, room / full, top, bottom, width)
    for place, bar in enumerate(bars):
        parts += _bar(bar, kinds, left, room / full, top + place * (_BAR + _GAP) + _GAP / 2, limits.values())
    parts.append(element("path", class_="line axis", d=f"M{left:.2f},{bottom:.2f} H{left + room:.2f}"))
    height = bottom + 30
    paper = element("rect", class_="paper", width=width, height=height, rx=6)
    return document(
        "\n".join([paper, *parts]),
        width=width,
        height=height,
        title=title,
        description=alt,
        style=stylesheet(theme, kinds.values()),
        definitions=definitions(kinds.values()),
    )


def _bar(
    bar: ResidencyBar, kinds: Mapping[str, int], left: float, pixels: float, top: float, limits: Collection[int]
) -> list[str]:
    budget = max(limits, default=None)
    parts = [
        text(
            left - 10,
            top + _BAR / 2 + 5,
            fit((bar.name,), left - 16, 14.0),
            font_size=14.0,
            text_anchor="end",
            class_="strong",
        )
    ]
    x = left
    for part, size in bar.parts.items():
        end = x + size * pixels
        if size:
            kind = kinds[part]
            tip = f"<title>{escape(part)}: {format_bytes(size)}</title>"
            parts.append(element("rect", tip, class_=f"s{kind}", x=x, y=top, width=max(end - x, 0.5), height=_BAR))
            if end - x >= 3:
                stripe = {"x": x + 1, "y": top + _BAR - _STRIPE - 1, "width": end - x - 2, "height": _STRIPE}
                parts.append(element("rect", fill_url=f"slot{kind}", **stripe))
            # Whole words or none, and no budget's line through them: the key and the table have the rest.
            begin, stop = _clear(x, end, [left + limit * pixels for limit in limits])
            forms = (f"{part} {format_bytes(size)}", part)
            words = next((w for w in forms if text_width(w, 13.0) <= stop - begin - 8), "")
            if words:
                parts.append(text((begin + stop) / 2, top + 20, words, font_size=13.0, text_anchor="middle"))
        x = end
    over = budget is not None and bar.total > budget
    if budget is not None and over:
        edge = left + budget * pixels
        box = {"x": edge, "y": top - 3, "width": x - edge, "height": _BAR + 6}
        parts.append(element("rect", class_="line hazard", stroke_width=2, **box))
    label, at = format_bytes(bar.total), x + 8
    # No budget's line runs through the label: it goes behind the line that it would cross.
    for limit in sorted(limits):
        if at - 4 < left + limit * pixels < at + text_width(label, 13.0) + 4:
            at = left + limit * pixels + 8
    parts.append(
        text(at, top + _BAR / 2 + 5, label, font_size=13.0, class_="alarm strong halo" if over else "strong halo")
    )
    return parts


def _clear(begin: float, end: float, lines: Collection[float]) -> tuple[float, float]:
    """The widest piece of ``begin`` to ``end`` that none of ``lines`` crosses."""
    cuts = [begin, *sorted(line for line in lines if begin < line < end), end]
    return max(pairwise(cuts), key=lambda piece: piece[1] - piece[0])


def _budget_words(name: str, limit: int) -> str:
    """The budget's name and size; a name that says the size already stands alone."""
    size = format_bytes(limit)
    short = re.sub(r"\.?0+(?= )", "", size)
    return name if short in name or size in name else f"{name}: {size}"


def _budget_lines(
    limits: Mapping[str, int], left: float, pixels: float, top: float, bottom: float, width: float
) -> list[str]:
    """A broken line for each budget, its words above the bars, each a row higher than the one to its left."""
    lines, parts = [], []
    for place, (name, limit) in enumerate(limits.items()):
        x = left + limit * pixels
        y = top - 6 - 20 * place
        words = fit((_budget_words(name, limit), name), width - 24, 13.0)
        half = text_width(words, 13.0) / 2
        lines.append(element("path", class_="line budget", d=f"M{x:.2f},{y + 5:.2f} V{bottom:.2f}", stroke_width=1.5))
        at = min(max(x, half + 12), width - half - 12)
        parts.append(text(at, y, words, font_size=13.0, text_anchor="middle", class_="strong halo"))
    return lines + parts
