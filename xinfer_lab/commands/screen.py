"""What commands show on a terminal: tables, and a progress bar while layers are read. Plain text everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

__all__ = ["layer_progress", "print_table", "screen_width"]

_WIDEST = 120


def screen_width() -> int:
    """Columns to draw in: the terminal's, 80 where there is none; never below 40 or above 120."""
    return max(40, min(_WIDEST, Console().width))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
    """Print ``rows`` under ``columns``, with room around; all but the first ``left`` columns are right-aligned."""
    console = Console(highlight=False, markup=False, emoji=False)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for place, name in enumerate(columns):
        table.add_column(name, justify="left" if place < left else "right", overflow="fold", no_wrap=place == 0)
    for row in rows:
        table.add_row(*(_printable(cell, console.encoding) for cell in row))
    console.print()
    console.print(table)
    console.print()


def _printable(text: str, encoding: str) -> str:
    """``text``, with the one letter of our units replaced that an old terminal may lack."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.replace("µ", "u")
    return text


@contextmanager
def layer_progress(what: str, layers: int) -> Iterator[Callable[[int], None] | None]:
    """A callback for each layer that was read, which moves a bar on standard error; None where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    look = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("layers"),
        TimeElapsedColumn(),
    )
    with Progress(*look, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=layers)
        yield lambda layer: progress.update(task, completed=layer + 1)
