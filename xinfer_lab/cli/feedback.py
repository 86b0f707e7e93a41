"""`xinfer-lab feedback`: writes students' feedback pages from marked notebooks and the gradebook."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import typer

from xinfer_lab.cli.courses import labs_of
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.output import output_file
from xinfer_lab.cli.screen import print_table
from xinfer_lab.course.database import GradebookError
from xinfer_lab.course.feedback.generate import generate_feedback, marked_students

__all__ = ["feedback"]


def feedback(lab: str, *, students: Sequence[str], root: Path, archive: Path | None = None) -> int:
    """Write the pages and print where they are. 1 if somebody who was asked for has none, else 0.

    Raises `CommandError` where the course in ``root`` has no such lab, or nothing is marked.
    """
    labs_of(root, [lab])
    if not students and not marked_students(root, lab):
        raise CommandError(f"nothing of {lab} is marked yet; mark it first: xinfer-lab autograde {lab}")
    try:
        pages = generate_feedback(root, lab, students or None)
    except (GradebookError, ValueError) as error:
        raise CommandError(str(error)) from error
    rows = [
        [found.student, "\n".join(str(path.relative_to(root)) for path in found.paths) or f"no page: {found.problem}"]
        for found in pages
    ]
    print_table(["student", "page"], rows, left=2)
    missing = sum(not found.paths for found in pages)
    count = len(pages) - missing
    typer.echo(f"Feedback for {count} of {len(pages)}.")
    if archive is not None:
        with output_file(archive) as made, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
            for found in pages:
                for path in found.paths:
                    file.write(path, f"{found.student}/{lab}-{path.name}")
        typer.echo(f"All pages: {archive} (a folder for each student).")
    return 1 if missing else 0
