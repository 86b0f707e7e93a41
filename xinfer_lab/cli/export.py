"""`xinfer-lab export`: the gradebook as CSV."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from xinfer_lab.cli.courses import labs_of
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.output import output_file
from xinfer_lab.course.database import GradebookError
from xinfer_lab.course.export import plain, rows_of, write_csv
from xinfer_lab.course.gradebook import CourseBook
from xinfer_lab.course.lab import find_lab
from xinfer_lab.course.lms import table_for

__all__ = ["export"]


def export(labs: Sequence[str], *, out: Path | None, root: Path, kind: str = "csv", partial: bool = False) -> int:
    """Write a row for each student and lab into the file ``out``, or to standard output. Always 0.

    Without ``labs``, all that are released. ``kind`` "canvas" or "moodle": a row for each student, as those take it.
    """
    page = io.StringIO()
    chosen = [lab for lab in labs_of(root, labs) if labs or (root / "labs" / lab).is_dir()]
    try:
        book = CourseBook(root)
        rows = [row for lab in chosen for row in rows_of(book, find_lab(root, lab))]
    except (ValueError, GradebookError) as error:
        raise CommandError(str(error)) from error
    if kind == "csv":
        write_csv(rows, page)
    else:
        table, empty = table_for(kind, rows, partial=partial)
        csv.writer(page, lineterminator="\n").writerows([plain(cell) for cell in line] for line in table)
        for line in empty:
            typer.echo(line, err=True)
    if out is None:
        sys.stdout.write(page.getvalue())
        return 0
    with output_file(out) as made:
        made.write_text(page.getvalue(), encoding="utf-8", newline="")
    return 0
