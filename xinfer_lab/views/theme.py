"""Defines colours and patterns: every slot has both, so that no picture speaks by colour alone.

The slot hues are those that Okabe and Ito proposed for colour-blind readers (Color Universal Design, 2008), their
yellow darkened where it must stand on white. Tints are mixed with the paper, so text on a bar keeps a contrast of 7:1
or better.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from xinfer_lab.views.svg import ID, element

__all__ = ["DARK", "LIGHT", "PATTERNS", "Theme", "ThemeName", "definitions", "slot_look", "stylesheet"]

ThemeName = Literal["light", "dark", "auto"]

HUES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7a7a7a")
"""One for each slot in turn; beyond eight, the same hue meets another pattern."""

PATTERNS = (
    (8, "M-1,9 L9,-1 M-1,1 L1,-1 M7,9 L9,7"),
    (8, "M2,2 h0 M6,6 h0"),
    (8, "M0,2 h8 M0,6 h8"),
    (8, "M-1,-1 L9,9 M-1,7 L1,9 M7,-1 L9,1"),
    (8, "M2,0 v8 M6,0 v8"),
    (8, "M0,0 L8,8 M8,0 L0,8"),
    (8, "M0,6 L4,2 L8,6"),
    (8, "M4,1 v6 M1,4 h6"),
)
"""(tile size, strokes) of each pattern: diagonals, dots, lines, counter-diagonals, bars, lattice, zigzag, crosses."""


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of one appearance; ``tint`` is the share of a hue in a bar's body, ``line`` in its strokes."""

    paper: str
    band: str
    ink: str
    muted: str
    rule: str
    plain: str
    plain_line: str
    idle: str
    memory: str
    memory_line: str
    hazard: str
    hazard_ink: str
    tint: float
    line: float


LIGHT = Theme(
    paper="#ffffff",
    band="#f5f6f8",
    ink="#1b1f24",
    muted="#57606a",
    rule="#d8dee4",
    plain="#e4e8ec",
    plain_line="#6e7781",
    idle="#c3c9d0",
    memory="#dfe7ee",
    memory_line="#4a6378",
    hazard="#b3001b",
    hazard_ink="#ffffff",
    tint=0.24,
    line=0.95,
)
DARK = Theme(
    paper="#14181d",
    band="#1b2027",
    ink="#eef2f6",
    muted="#a3adb8",
    rule="#323a44",
    plain="#333c46",
    plain_line="#98a3ae",
    idle="#4c5661",
    memory="#26343f",
    memory_line="#86a9c2",
    hazard="#ff7d87",
    hazard_ink="#14181d",
    tint=0.34,
    line=0.86,
)


def slot_look(slot: int) -> tuple[str, int]:
    """The hue of ``slot`` and the number of its pattern; the pair is its own for every slot below 64."""
    turn, place = divmod(slot % 64, len(HUES))
    return HUES[place], (place + turn) % len(PATTERNS)


def _mix(colour: str, paper: str, share: float) -> str:
    channels = (round(int(colour[i : i + 2], 16) * share + int(paper[i : i + 2], 16) * (1 - share)) for i in (1, 3, 5))
    return "#" + "".join(f"{channel:02x}" for channel in channels)


def _rules(theme: Theme, slots: Iterable[int]) -> list[tuple[str, str]]:
    away = "#ffffff" if theme is DARK else "#000000"
    rules = [
        (".paper", f"fill:{theme.paper}"),
        (".band", f"fill:{theme.band}"),
        ("text", f"fill:{theme.ink}"),
        ("text.muted", f"fill:{theme.muted}"),
        ("text.halo", f"stroke:{theme.paper}"),
        (".rule", f"stroke:{theme.rule}"),
        (".axis", f"stroke:{theme.muted}"),
        (".plain", f"fill:{theme.plain};stroke:{theme.plain_line}"),
        (".idle", f"fill:{theme.paper};stroke:{theme.idle}"),
        (".outline", f"fill:{theme.paper};stroke:{theme.muted}"),
        (".hatch", f"stroke:{theme.idle}"),
        (".flow", f"stroke:{theme.muted}"),
        (".tip", f"fill:{theme.muted}"),
        (".area", f"fill:{theme.memory}"),
        (".curve", f"stroke:{theme.memory_line}"),
        (".budget", f"stroke:{theme.ink}"),
        (".hazard", f"stroke:{theme.hazard}"),
        (".badge", f"fill:{theme.hazard}"),
        ("text.on-badge", f"fill:{theme.hazard_ink}"),
        ("text.alarm", f"fill:{theme.hazard}"),
    ]
    for slot in slots:
        line = _mix(slot_look(slot)[0], away, theme.line)
        body = _mix(slot_look(slot)[0], theme.paper, theme.tint)
        rules += [(f".s{slot}", f"fill:{body};stroke:{line}"), (f".k{slot}", f"stroke:{line}")]
    return rules


def _sheet(theme: Theme, slots: Iterable[int]) -> str:
    return "".join(f"#{ID} {selector}{{{rule}}}" for selector, rule in _rules(theme, slots))


def stylesheet(theme: ThemeName, slots: Iterable[int] = ()) -> str:
    """The rules of a picture that shows ``slots``. ``"auto"`` follows the reader's own setting, else it is light."""
    if theme not in ("light", "dark", "auto"):
        raise ValueError(f"theme must be 'light', 'dark' or 'auto', not {theme!r}")
    used = sorted(set(slots))
    shapes = (
        f"#{ID} .line{{fill:none;stroke-linecap:round;stroke-linejoin:round}}"
        f"#{ID} .pattern{{fill:none;stroke-width:1.6;stroke-linecap:round}}"
        f"#{ID} .cut{{fill:none}}#{ID} .dots{{stroke-width:3.2}}"
        f"#{ID} .budget{{stroke-dasharray:6 4}}#{ID} .hazard{{fill:none;stroke-dasharray:4 3}}"
        f"#{ID} .strong{{font-weight:600}}#{ID} .halo{{paint-order:stroke;stroke-width:4px;stroke-linejoin:round}}"
    )
    sheet = shapes + _sheet(DARK if theme == "dark" else LIGHT, used)
    if theme == "auto":
        sheet += f"@media (prefers-color-scheme:dark){{{_sheet(DARK, used)}}}"
    return sheet


def definitions(slots: Iterable[int] = ()) -> str:
    """The patterns of ``slots``, the hatching of waits, and the arrow head."""
    parts = []
    for slot in sorted(set(slots)):
        size, strokes = PATTERNS[slot_look(slot)[1]]
        kind = "pattern dots" if "h0" in strokes else "pattern"
        parts.append(_pattern(f"slot{slot}", size, element("path", class_=f"{kind} k{slot}", d=strokes)))
    parts.append(_pattern("hatch", 7, element("path", class_="pattern hatch", d="M-1,8 L8,-1 M-1,1 L1,-1 M6,8 L8,6")))
    tip = element("path", class_="tip", d="M0,0 L8,4 L0,8 z")
    parts.append(
        element(
            "marker", tip, id="tip", viewBox="0 0 8 8", refX=7, refY=4, markerWidth=7, markerHeight=7, orient="auto"
        )
    )
    return "".join(parts)


def _pattern(name: str, size: int, content: str) -> str:
    return element("pattern", content, id=name, width=size, height=size, patternUnits="userSpaceOnUse")
