"""`xinfer-lab export`: the gradebook as CSV."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from xinfer_lab.commands.courses import labs_of
from xinfer_lab.commands.faults import CommandError
from xinfer_lab.commands.output import output_file
from xinfer_lab.course.export import rows_of, write_csv
from xinfer_lab.course.gradebook import CourseBook
from xinfer_lab.course.lab import find_lab

__all__ = ["export"]


def export(labs: Sequence[str], *, out: Path | None, root: Path) -> int:
    """Write a row for each student and lab into the file ``out``, or to standard output. Always 0.

    Without ``labs``, all that are released.
    """
    book = CourseBook(root)
    page = io.StringIO()
    chosen = [lab for lab in labs_of(root, labs) if labs or (root / "labs" / lab).is_dir()]
    try:
        write_csv([row for lab in chosen for row in rows_of(book, find_lab(root, lab))], page)
    except ValueError as error:
        raise CommandError(str(error)) from error
    if out is None:
        sys.stdout.write(page.getvalue())
        return 0
    with output_file(out) as made:
        made.write_text(page.getvalue(), encoding="utf-8", newline="")
    return 0
