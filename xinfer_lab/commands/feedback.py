"""`xinfer-lab feedback`: the pages that students get back, from marked notebooks and the gradebook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from xinfer_lab.commands.courses import labs_of
from xinfer_lab.commands.faults import CommandError
from xinfer_lab.commands.screen import print_table
from xinfer_lab.course.feedback.generate import generate_feedback, marked_students

__all__ = ["feedback"]


def feedback(lab: str, *, students: Sequence[str], root: Path) -> int:
    """Write the pages and print where they are. 1 if somebody who was asked for has none, else 0.

    Raises `CommandError` where the course in ``root`` has no such lab, or nothing is marked.
    """
    labs_of(root, [lab])
    if not students and not marked_students(root, lab):
        raise CommandError(f"nothing of {lab} is marked yet; mark it first: xinfer-lab autograde {lab}")
    pages = generate_feedback(root, lab, students or None)
    rows = [
        [found.student, "\n".join(str(path.relative_to(root)) for path in found.paths) or f"no page: {found.problem}"]
        for found in pages
    ]
    print_table(["student", "page"], rows, left=2)
    missing = sum(not found.paths for found in pages)
    count = len(pages) - missing
    typer.echo(f"Feedback for {count} of {len(pages)}.")
    return 1 if missing else 0
