"""`xinfer-lab roster` and `xinfer-lab due`: who is in the class, and when labs are due."""

from __future__ import annotations

from pathlib import Path

import typer

from xinfer_lab.cli.courses import labs_of
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.course.database import GradebookError
from xinfer_lab.course.gradebook import CourseBook
from xinfer_lab.course.lock import Busy, only_one
from xinfer_lab.course.roster import due_of, enrol, read_roster, set_due

__all__ = ["due", "roster"]


def roster(file: Path, *, root: Path) -> int:
    """Put the people in ``file`` into the gradebook, and say who handed in without being among them. Always 0."""
    try:
        people = read_roster(file.read_bytes())
        book = CourseBook(root)
        with only_one(root, "reading a roster"):
            new, changed = enrol(book, people)
        handed_in = {student for lab in labs_of(root) for student in book.students(lab)}
    except (ValueError, GradebookError, Busy) as error:
        raise CommandError(str(error)) from error
    typer.echo(f"{len(people)} students: {new} new, {changed} changed, {len(people) - new - changed} as before.")
    strangers = sorted(handed_in - {person.student for person in people})
    if strangers:
        typer.echo(f"Handed in, and not on this roster: {', '.join(strangers)}.")
    return 0


def due(lab: str, when: str | None, *, never: bool, root: Path) -> int:
    """Let ``lab`` be due at ``when`` or never, and say when it is due. Always 0."""
    labs_of(root, [lab])
    try:
        book = CourseBook(root)
        if when is not None or never:
            with only_one(root, "setting a due date"):
                at = set_due(book, lab, when)
        else:
            at = due_of(book, lab)
    except (ValueError, GradebookError, Busy) as error:
        raise CommandError(str(error)) from error
    if at is None:
        typer.echo(f"{lab} has no due date.")
        return 0
    typer.echo(f"{lab} is due {at.isoformat(sep=' ', timespec='minutes')} ({at.astimezone():%Y-%m-%d %H:%M %Z} here).")
    if when is not None:
        typer.echo(f"Penalties are worked out when it is marked: xinfer-lab autograde {lab} --again")
    return 0
