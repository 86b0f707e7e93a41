"""One page to show a friend: the model, the memory it never had, the text, the timeline, and whose parts ran.

Self-contained: no script, no font and no picture from anywhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from xinfer_lab.views.picture import Picture

__all__ = ["EnginePage"]


@dataclass(frozen=True, kw_only=True)
class EnginePage:
    """What the page says. ``facts`` are pairs of a name and its value; ``said`` is the text that the model made."""

    title: str
    promise: str
    parity: str
    facts: Sequence[tuple[str, str]]
    said: str
    pictures: Sequence[Picture]

    def html(self) -> str:
        """The page."""
        environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
        )
        return environment.get_template("page.html.j2").render(
            title=self.title, promise=self.promise, parity=self.parity, facts=self.facts, said=self.said,
            pictures=self.pictures,
        )  # fmt: skip
