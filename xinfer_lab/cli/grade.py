"""`xinfer-lab grade`: written answers by question, on one page of a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import typer

from xinfer_lab.cli.courses import labs_of
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.course.database import GradebookError
from xinfer_lab.course.gradebook import CourseBook
from xinfer_lab.course.lab import find_lab
from xinfer_lab.course.written import answers_to, questions_of
from xinfer_lab.course.written_server import WrittenServer

__all__ = ["grade"]


def grade(lab: str, *, browse: bool, port: int, root: Path) -> int:
    """Serve the page until Ctrl-C. Always 0. Raises `CommandError` where there is nothing to grade."""
    labs_of(root, [lab])
    try:
        known, book = find_lab(root, lab), CourseBook(root)
        questions = questions_of(known, root / "solutions" / lab / known.name)
        if not questions:
            raise CommandError(f"{lab} has no written answers")
        waiting = sum(one.waiting for question in questions for one in answers_to(question, book, known))
    except (ValueError, GradebookError) as error:
        raise CommandError(str(error)) from error
    with WrittenServer(book, known, questions, port) as server:
        typer.echo(f"{waiting} answers wait. The page, for this machine alone: {server.address}")
        typer.echo("Ctrl-C ends it; points are stored as they are given.")
        if browse:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("Ended.")
    return 0
