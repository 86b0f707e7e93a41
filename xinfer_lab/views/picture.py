"""Defines a picture: the drawing, the words that say the same, and the table that says the same."""

from __future__ import annotations

import base64
import html
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SHOWN_ROWS", "Picture"]

SHOWN_ROWS = 300
"""How many rows of the table the HTML form shows; `Picture.table` has them all."""

# A notebook's own light or dark setting comes before the system's. Where styles are stripped, the system's applies.
_FOLLOW_NOTEBOOK = (
    '<style>[data-jp-theme-light="true"] img.xinfer-picture{color-scheme:light}'
    '[data-jp-theme-light="false"] img.xinfer-picture{color-scheme:dark}</style>'
)


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """A static picture that needs no script, no kernel and no other file.

    ``svg`` is a self-contained SVG document; ``alt`` says in a few sentences what it shows; ``columns`` and ``table``
    (rows of text cells) say the same as the drawing; ``notes`` are remarks shown under it (what was left out, each
    hazard's text).
    """

    title: str
    svg: str
    alt: str
    columns: tuple[str, ...]
    table: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def save(self, path: str | Path) -> None:
        """Write the SVG to ``path``."""
        Path(path).write_text(self.svg, encoding="utf-8", newline="\n")

    def html(self) -> str:
        """The figure, its notes and the table (folded away), as HTML that notebook viewers show without trusting it.

        The drawing is an image in a data URI: viewers that strip inline SVG keep it, and no style leaks in or out.
        """
        data = base64.b64encode(self.svg.encode()).decode("ascii")
        image = (
            f'<img class="xinfer-picture" src="data:image/svg+xml;base64,{data}" alt="{html.escape(self.alt)}" '
            'style="max-width:100%;height:auto">'
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        caption = f"<figcaption>{notes}</figcaption>" if notes else ""
        return f'{_FOLLOW_NOTEBOOK}<figure style="margin:0">{image}{caption}</figure>{self._details()}'

    def markdown(self) -> str:
        """Title, description, notes and table as Markdown, for where no image can be shown."""
        lines = [f"**{_cell(self.title)}**", "", _cell(self.alt), ""]
        for note in self.notes:
            lines += [_cell(note), ""]
        if self.table:
            lines += [_row(self.columns), _row(["---"] * len(self.columns)), *map(_row, self.table)]
        return "\n".join(lines) + "\n"

    def _details(self) -> str:
        if not self.table:
            return ""
        shown = self.table[:SHOWN_ROWS]
        left = len(self.table) - len(shown)
        head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in self.columns)
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in shown)
        more = f"<p>{left} more rows are in <code>picture.table</code>.</p>" if left else ""
        # A table with many columns is scrolled, by keyboard too, in place of the page.
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        table = f"<div style='overflow-x:auto' tabindex='0'>{table}</div>"
        return f"<details><summary>The same as a table: {html.escape(self.title)}</summary>{table}{more}</details>"

    def _repr_html_(self) -> str:
        return self.html()

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def __repr__(self) -> str:
        return "\n".join((self.title, self.alt, *self.notes))


def _cell(words: str) -> str:
    plain = html.escape(words, quote=False).replace("\\", "\\\\").replace("|", "\\|")
    for mark in "*_`[]":
        plain = plain.replace(mark, "\\" + mark)
    return " ".join(plain.split())


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(cell if cell == "---" else _cell(cell) for cell in cells) + " |"
