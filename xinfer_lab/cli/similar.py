"""`xinfer-lab similar`: which submissions of a lab are alike."""

from __future__ import annotations

from pathlib import Path

import typer

from xinfer_lab.cli.courses import labs_of
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.screen import print_table
from xinfer_lab.course.gradebook import CourseBook
from xinfer_lab.course.lab import find_lab
from xinfer_lab.course.similar import Pair, alike, work_of

__all__ = ["similar"]


def similar(lab: str, *, most: int, share: float, root: Path) -> int:
    """Print the ``most`` pairs that are most alike, and what they have in common. Always 0. Raises `CommandError`."""
    labs_of(root, [lab])
    try:
        known, book = find_lab(root, lab), CourseBook(root)
    except ValueError as error:
        raise CommandError(str(error)) from error
    found = [work_of(name, known, book.autograded(lab, name) / known.name) for name in book.students(lab)]
    works = [work for work in found if work is not None]
    if len(works) < 2:
        raise CommandError(
            f"fewer than two submissions of {lab} are marked; mark them first: xinfer-lab autograde {lab}"
        )
    pairs = alike(works, share=share)
    typer.echo(f"{lab}: {len(works)} submissions compared, {len(pairs)} pairs alike where few others are.")
    if pairs:
        columns = ["students", "rare code in common", "most in", "same comments", "same commands in"]
        print_table(columns, [_row(pair) for pair in pairs[:most]], left=5)
        typer.echo("Evidence, not proof: look at both, and ask both. Who worked from one source looks alike.")
    return 0


def _row(pair: Pair) -> list[str]:
    code = f"{100 * pair.share:.0f} % ({pair.shared})" if pair.share else "-"
    first = pair.comments[0][:40] if pair.comments else "-"
    more = f" and {len(pair.comments) - 1} more" if len(pair.comments) > 1 else ""
    gaps, streams = ", ".join(pair.gaps[:2]) or "-", ", ".join(pair.streams) or "-"
    return [" and ".join(pair.students), code, gaps, first + more, streams]
