"""Commands on a class: feedback, dispute, replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xinfer_lab.commands.courses import find_course

__all__ = ["dispute", "feedback", "replay"]

Lab = Annotated[str, typer.Argument(metavar="LAB", help="The lab's folder in solutions/, such as lab1-residency.")]
Root = Annotated[Path, typer.Option(metavar="DIR", help="The course's folder.")]


def feedback(
    lab: Lab,
    student: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this student; may be given several times.")
    ] = None,
    root: Root = Path(),
) -> int:
    """Write the pages that students get back: what was expected, what happened and why, without hidden tests."""
    root = find_course(root)
    from xinfer_lab.commands import feedback as command

    return command.feedback(lab, students=student or (), root=root)


def dispute(
    lab: Lab,
    student: Annotated[str, typer.Argument(metavar="STUDENT", help="Whose marked notebook is asked again.")],
    piece: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this piece or grade cell; may be given several times."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where evidence is kept; disputes/STUDENT/LAB if left out.")
    ] = None,
    sandbox: Annotated[str, typer.Option(metavar="KIND", help="auto, bubblewrap or none.")] = "auto",
    root: Root = Path(),
) -> int:
    """Ask a marked notebook again with the very cases that it was marked with, and keep what came of it.

    The gradebook and the marked notebook stay as they are. Exit status 1: something came out otherwise than before.
    """
    root = find_course(root)
    from xinfer_lab.commands import dispute as command

    return command.dispute(lab, student, pieces=piece or (), out=out, sandbox=sandbox, root=root)


def replay(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `xinfer-lab dispute` wrote.")],
    case: Annotated[int | None, typer.Option(metavar="N", help="Only this case, counted from 1.")] = None,
) -> int:
    """Replay a student's recorded command stream in several orders, and show its hazards and its picture.

    None of the student's code runs. Exit status 1: a hazard or a state fault was found.
    """
    from xinfer_lab.commands import replay as command

    return command.replay(folder, case=case)
