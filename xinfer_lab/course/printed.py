"""Catch what code prints, up to a size."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

__all__ = ["Page", "printed"]

MOST = 20_000
"""Characters that are kept of one cell's output."""


class Page(io.TextIOBase):
    """Keeps the beginning of what is written to it."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._left = MOST

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, text: str) -> int:
        """Keep ``text`` as far as there is room."""
        text = str(text)
        if self._left > 0:
            self._parts.append(text[: self._left])
            self._left -= len(text)
        return len(text)

    @property
    def text(self) -> str:
        """What was kept."""
        return "".join(self._parts) + ("\n… (cut)" if self._left < 0 else "")


@contextmanager
def printed() -> Iterator[Page]:
    """While the block runs, standard output and errors go to a page of their own."""
    page = Page()
    with redirect_stdout(page), redirect_stderr(page):
        yield page
