"""What commands show: tables and progress bars on a terminal, plain text everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

__all__ = ["layer_progress", "print_table", "say_tier", "screen_width"]

_WIDEST = 120


def screen_width() -> int:
    """Columns to draw in: the terminal's, 80 where there is none; never below 40 or above 120."""
    return max(40, min(_WIDEST, Console().width))


def say_tier(sentence: str) -> None:
    """Say on standard error which host memory was chosen, and why."""
    print(sentence, file=sys.stderr)


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, spare: Sequence[str] = ()
) -> None:
    """Print ``rows`` under ``columns``, with room around; all but the first ``left`` columns are right-aligned.

    ``spare``: columns that a terminal too narrow for all goes without, the first of them first; what is no terminal
    gets lines as long as they are.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    shown = list(range(len(columns)))
    table = _table(columns, rows, shown, left, console.encoding)
    for name in spare if console.is_terminal else ():
        if _wide(table, console) > console.width:
            shown.remove(columns.index(name))
            table = _table(columns, rows, shown, left, console.encoding)
    if spare and not console.is_terminal:
        console.width = max(console.width, _wide(table, console))
    console.print()
    console.print(table)
    console.print()


def _wide(table: Table, console: Console) -> int:
    """Letters in a line of ``table`` that is not folded."""
    return table.__rich_measure__(console, console.options.update(max_width=_ENDLESS)).maximum


_ENDLESS = 10_000
"""More letters than a line has."""


def _table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[int], left: int, encoding: str
) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for place in shown:
        justify: Literal["left", "right"] = "left" if place < left else "right"
        table.add_column(columns[place], justify=justify, overflow="fold", no_wrap=place == 0)
    for row in rows:
        table.add_row(*(_printable(row[place], encoding) for place in shown))
    return table


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
