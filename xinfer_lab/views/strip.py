"""Draws the frame that strips and maps share: title, legend, and bands of columns below each other.

A row of equal cells is cut into bands as wide as the picture, as text is into lines. What a cell shows is for the
module that draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from xinfer_lab.views.legend import LegendItem, draw_legend
from xinfer_lab.views.svg import document, element, fit, text
from xinfer_lab.views.theme import ThemeName, definitions, stylesheet

__all__ = ["Strip", "box", "row_names"]

_NARROWEST = 320


@dataclass(frozen=True, slots=True)
class Strip:
    """A picture of ``width`` pixels with room for as many cells of ``cell`` pixels as fit to the right of ``left``.

    ``noun`` names the picture in an error. Raises ValueError below 320 pixels.
    """

    noun: str
    width: int
    left: float
    cell: float

    def __post_init__(self) -> None:
        if self.width < _NARROWEST:
            raise ValueError(
                f"{self.noun} needs at least {_NARROWEST} pixels of width, not {self.width}; show fewer entries instead"
            )

    @property
    def columns(self) -> int:
        """Cells in a band."""
        return max(1, int((self.width - self.left - 12) / self.cell))

    def x(self, column: int) -> float:
        """The left edge of a cell."""
        return self.left + column * self.cell

    def draw(
        self,
        count: int,
        band: Callable[[int, int, float], Iterable[str]],
        *,
        title: str,
        description: str,
        legend: Sequence[LegendItem],
        band_height: float,
        hues: Sequence[int],
        empty: str,
        theme: ThemeName,
    ) -> str:
        """The SVG document. ``band(begin, end, top)`` draws the cells ``begin`` to ``end`` of ``count`` below ``top``.

        ``band_height`` holds the space below a band. ``hues`` are the slots' colours in use. Where there is no cell,
        the sentence ``empty`` stands instead.
        """
        parts = [text(12, 26, fit((title,), self.width - 24, 18.0), font_size=18.0, class_="strong")]
        items, high = draw_legend(legend if count else (), 12, self.width - 12, 40)
        parts += items
        top = 48.0 + high
        for begin in range(0, count, self.columns):
            parts += band(begin, min(count, begin + self.columns), top)
            top += band_height
        if not count:
            parts.append(text(12, top + 12, empty, font_size=14.0, class_="muted"))
            top += 30
        paper = element("rect", class_="paper", width=self.width, height=top, rx=6)
        return document(
            "\n".join([paper, *parts]),
            width=self.width,
            height=top,
            title=title,
            description=description,
            style=stylesheet(theme, hues),
            definitions=definitions(hues),
        )


def row_names(names: Iterable[str], right: float, top: float, row: float, font_size: float = 14.0) -> Iterator[str]:
    """The names of a band's rows, each ``row`` pixels high, written so that they end at ``right``."""
    for place, name in enumerate(names):
        y = top + place * row + row / 2 + 5
        yield text(right, y, name, font_size=font_size, text_anchor="end", class_="strong")


def box(x: float, y: float, width: float, height: float) -> dict[str, float]:
    """The rectangle of a cell at ``(x, y)``, a little smaller than the cell."""
    return {"x": x + 1.5, "y": y + 1.5, "width": width - 3, "height": height - 3, "rx": 3.0}
