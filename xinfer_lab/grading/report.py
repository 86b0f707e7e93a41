"""A report: what a student is told about an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from html import escape
from textwrap import wrap
from typing import Any

__all__ = ["TOO_LONG", "Drawing", "Misconception", "Passed", "Report", "folded"]

TOO_LONG = (
    "It took too long and was stopped.",
    "Look for a loop that never ends, or for work that is done over and over.",
)
"""What is said of an answer whose time is up, and where to look: whether it would ever have ended, nobody knows."""

WIDTH = 64
"""Characters of a line of a report's text, labels aside: with them it fits a notebook in a window of 800 pixels, where
longer lines would be broken once more, under the labels."""

_HEAD = "text-align:left;vertical-align:top;padding:2px 12px 2px 0;white-space:nowrap"
_CELL = "text-align:left;white-space:pre-wrap;font-family:monospace"


def _cell(text: str) -> str:
    """The style of a cell with ``text``: columns that stand below one another must not be wrapped."""
    return _CELL.replace("pre-wrap", "pre") if "\n" in text else _CELL


def folded(text: str, width: int) -> str:
    """A hazard or state report with its sentences in lines of ``width`` characters; the picture below them, made of
    letters, as it is. Text without such a picture stays as it is."""
    told, gap, drawn = text.partition("\n\n")
    if not gap:
        return text
    lines = [
        part
        for line in told.splitlines()
        for part in wrap(line, width, subsequent_indent=" " * 11, break_on_hyphens=False, break_long_words=False)
    ]
    return "\n".join(lines) + gap + drawn


def _lines(text: str) -> list[str]:
    """``text`` in lines: wrapped, unless it has lines of its own, whose columns would not survive that."""
    return (
        folded(text, WIDTH).splitlines()
        if "\n" in text
        else wrap(text, WIDTH, break_on_hyphens=False, break_long_words=False) or [""]
    )


@dataclass(frozen=True, slots=True)
class Misconception:
    """A known wrong model that explains what was returned: its name, and one sentence that corrects it."""

    name: str
    explanation: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture for a report: its SVG, what it shows in words (``alt``), and the same content as text (``table``)."""

    svg: str
    alt: str
    table: str

    def _repr_html_(self) -> str:
        """The picture, its words for those who do not see it, and the text that says the same, folded away."""
        return (
            f'<figure role="img" aria-label="{escape(self.alt)}" style="margin:0">{self.svg}</figure>'
            f"<details><summary>The picture as text</summary><pre>{escape(self.table)}</pre></details>"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict on one piece. Every field is plain text or None, so that it can be stored, sent and shown anywhere.

    ``where`` is the first case and the place in it at which the answer and the truth part; ``line`` is the student's
    own. ``checked`` counts the cases that were compared.
    """

    piece: str
    passed: bool
    headline: str
    where: str | None = None
    expected: str | None = None
    got: str | None = None
    line: str | None = None
    misconception: Misconception | None = None
    hint: str | None = None
    picture: Drawing | None = None
    checked: int = 0

    def rows(self) -> list[tuple[str, str]]:
        """What to show under the headline: label and text, in order."""
        likely = self.misconception and f"{self.misconception.name}. {self.misconception.explanation}"
        pairs = [
            ("where", self.where),
            ("expected", self.expected),
            ("got", self.got),
            ("your line", self.line),
            ("likely cause", likely),
            ("next", self.hint),
        ]
        return [(label, text) for label, text in pairs if text]

    def __str__(self) -> str:
        if self.passed:
            return f"{self.piece}: passed. {self.headline}"
        lines = [f"{self.piece}: not yet. {self.headline}"]
        for label, text in self.rows():
            first, *rest = _lines(text)
            lines.append(f"  {label + ':':<14}{first}")
            lines += [" " * 16 + more for more in rest]
        if self.picture:
            lines += ["", self.picture.table]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The report for a notebook: headings and a table, readable without colour, nothing loaded from elsewhere."""
        colour, mark = ("#1b7f3b", "passed") if self.passed else ("#b3261e", "not yet")
        cells = "".join(
            f'<tr><th scope="row" style="{_HEAD}">{label}</th><td style="{_cell(text)}">{escape(text)}</td></tr>'
            for label, text in self.rows()
        )
        table = f'<table style="border:0;margin:4px 0 0 0">{cells}</table>' if cells and not self.passed else ""
        picture = self.picture._repr_html_() if self.picture else ""
        return (
            f'<div style="border-left:4px solid {colour};padding:4px 10px;margin:4px 0">'
            f"<strong>{escape(self.piece)}: {mark}.</strong> "
            f"{escape(self.headline)}{table}{picture}</div>"
        )

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """The report that `to_dict` wrote. Raises ValueError where a field is missing, unknown or of another type."""
        known = {field.name for field in fields(cls)}
        if set(data) != known:
            raise ValueError(f"a report has the fields {sorted(known)}; this one {sorted(map(str, data))}")
        kinds: dict[str, type | tuple[type, ...]] = {"piece": str, "passed": bool, "headline": str, "checked": int}
        values = dict(data)
        for name, part in (("misconception", Misconception), ("picture", Drawing)):
            if values[name] is not None:
                values[name] = part(**values[name])
                kinds[name] = part
            else:
                kinds[name] = type(None)
        for name in known:
            if not isinstance(values[name], kinds.get(name, (str, type(None)))):
                raise ValueError(f"a report's {name} is a {type(values[name]).__name__}")
        return cls(**values)


@dataclass(frozen=True, slots=True, repr=False)
class Passed:
    """A passed ``report`` for a notebook, with the lines that come ``after`` it."""

    report: Report
    after: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "\n".join([str(self.report), *(line for line in self.after if line)])

    def _repr_html_(self) -> str:
        after = "".join(f"<br>{escape(line)}" for line in self.after if line)
        return (
            '<div style="border-left:4px solid #1b7f3b;padding:4px 10px;margin:4px 0"><strong><span aria-hidden="true">'
            f"\u2713 </span>{escape(self.report.piece)}: passed.</strong> {escape(self.report.headline)}{after}</div>"
        )
