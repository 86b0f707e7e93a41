"""Draws which parts of an engine are the student's: a box a part, a row a lab, in the order of building."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xinfer_lab.engine.parts import Found
from xinfer_lab.views.legend import LegendItem, draw_legend
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.svg import document, element, fit, sentence, text
from xinfer_lab.views.theme import ThemeName, definitions, stylesheet

__all__ = ["WORDS", "engine_picture", "summary"]

WORDS = {
    "yours": "yours",
    "changed": "yours, changed since its check passed",
    "open": "lent: a check is still to pass",
    "broken": "lent: yours cannot be used",
    "missing": "lent",
}
"""What a part's status is called."""

_LEFT, _BOX, _ROW, _YOURS, _CHANGED = 84.0, 150.0, 44.0, 2, 1
_COLUMNS = ("part", "lab", "whose", "what it does")


def summary(parts: Mapping[str, Found]) -> str:
    """How many parts are the student's, as a sentence."""
    own = sum(found.is_used for found in parts.values())
    return f"{own} of {len(parts)} parts are yours" + (
        "." if own == len(parts) else "; the rest is lent by the course."
    )


def engine_picture(
    parts: Mapping[str, Found], *, title: str = "Your engine", width: int = 800, theme: ThemeName = "auto"
) -> Picture:
    """The parts that `find_parts` found. Raises ValueError below 320 pixels."""
    if width < 320:
        raise ValueError(f"a picture of an engine needs at least 320 pixels of width, not {width}")
    alt = f"{sentence(title)} {summary(parts)} " + " ".join(_told(lab, found) for lab, found in _by_lab(parts))
    used = [look for look, status in ((_YOURS, "yours"), (_CHANGED, "changed")) if _any(parts, status)]
    items: list[LegendItem] = [(f"slot {look}", "yours" if look == _YOURS else WORDS["changed"]) for look in used]
    items += [("outline", "lent by the course")] if any(not found.is_used for found in parts.values()) else []
    svg = [text(12, 26, fit((title,), width - 24, 18.0), font_size=18.0, class_="strong")]
    legend, high = draw_legend(items, 12, width - 12, 40)
    svg += legend
    top, across = 48.0 + high, max(1, int((width - _LEFT - 12) / _BOX))
    for lab, found in _by_lab(parts):
        svg.append(text(_LEFT - 10, top + 25, _name(lab), font_size=14.0, text_anchor="end", class_="strong"))
        for place, one in enumerate(found):
            svg.append(_box(one, _LEFT + place % across * _BOX, top + place // across * _ROW))
        top += -(-len(found) // across) * _ROW + 8
    paper = element("rect", class_="paper", width=width, height=top, rx=6)
    drawing = document(
        "\n".join([paper, *svg]),
        width=width,
        height=top,
        title=title,
        description=alt,
        style=stylesheet(theme, used),
        definitions=definitions(used),
    )
    rows = [(one.part.name, _name(one.lab), WORDS[one.status], one.part.does) for one in parts.values()]
    return Picture(title, drawing, alt, _COLUMNS, tuple(rows), tuple(one.note for one in parts.values() if one.note))


def _by_lab(parts: Mapping[str, Found]) -> Iterable[tuple[str, list[Found]]]:
    labs: dict[str, list[Found]] = {}
    for found in parts.values():
        labs.setdefault(found.lab, []).append(found)
    return labs.items()


def _any(parts: Mapping[str, Found], status: str) -> bool:
    return any(found.status == status for found in parts.values())


def _name(lab: str) -> str:
    return f"Lab {lab.removeprefix('lab')}"


def _told(lab: str, found: Sequence[Found]) -> str:
    return f"{_name(lab)}: " + ", ".join(f"{one.part.name} ({WORDS[one.status]})" for one in found) + "."


def _box(found: Found, x: float, y: float) -> str:
    look = {"yours": f"s{_YOURS}", "changed": f"s{_CHANGED}"}.get(found.status, "outline")
    frame = element("rect", class_=look, x=x + 2, y=y + 2, width=_BOX - 6, height=_ROW - 6, rx=4.0)
    stripe = ""
    if found.is_used:
        slot = _YOURS if found.status == "yours" else _CHANGED
        stripe = element("rect", fill_url=f"slot{slot}", x=x + 3, y=y + _ROW - 12, width=_BOX - 8, height=7)
    words = fit((found.part.name,), _BOX - 16, 13.5)
    return frame + stripe + text(x + 10, y + 22, words, font_size=13.5, class_="strong" if found.is_used else "muted")
