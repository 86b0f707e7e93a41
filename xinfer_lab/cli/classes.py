"""Commands on a class: release, autograde, feedback, export, dispute, replay."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from xinfer_lab.commands.courses import find_course

__all__ = ["autograde", "dispute", "export", "feedback", "release", "replay"]

Root = Annotated[Path, typer.Option(metavar="DIR", help="The course's folder.")]
Lab = Annotated[str, typer.Argument(metavar="LAB", help="The lab's folder in solutions/, such as lab1-residency.")]


class Isolation(StrEnum):
    """Where students' code runs."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    NONE = "none"


def release(
    lab: Annotated[
        list[str] | None, typer.Argument(metavar="[LAB]...", help="Only these labs, such as lab1-residency.")
    ] = None,
    bundle: Annotated[bool, typer.Option("--bundle", help="Write the archive that students get, too.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.zip", help="The archive's name; release/xinfer-lab.zip if left out.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; say what differs or leaks.")] = False,
    root: Root = Path(),
) -> int:
    """Make labs/ from solutions/, tell the gradebook, and check that nothing is given away.

    The archive of `--bundle` has the labs, the package and what sets them up; of what a lab asks for it has nothing to
    read. Exit status 1: labs/ differs from solutions/ (with `--check`), or gives something away.
    """
    root = find_course(root)
    from xinfer_lab.commands import release as command

    return command.release(lab or (), bundle=bundle or out is not None, out=out, check=check, root=root)


def autograde(
    lab: Lab,
    student: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this student; may be given several times.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Submissions at a time; by default one a core.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on a Dask cluster, such as tcp://10.0.0.1:8786.")
    ] = None,
    sandbox: Annotated[
        Isolation,
        typer.Option(help="bubblewrap refuses to mark without it; auto takes it where it works; none does without."),
    ] = Isolation.AUTO,
    again: Annotated[bool, typer.Option("--again", help="Mark those too who have marks already.")] = False,
    root: Root = Path(),
) -> int:
    """Mark what students handed in in submitted/STUDENT/LAB, many at a time, into nbgrader's gradebook.

    Who has marks for the same files keeps them, so that a run that was broken off goes on when it is started again.
    Exit status 1: somebody was not marked, and it is said why.
    """
    root = find_course(root)
    from xinfer_lab.commands import autograde as command

    return command.autograde(
        lab, students=student or (), jobs=jobs, scheduler=scheduler, sandbox=sandbox.value, again=again, root=root
    )


def export(
    lab: Annotated[list[str] | None, typer.Argument(metavar="[LAB]...", help="Only these labs.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Where to write it; standard output if left out.")
    ] = None,
    root: Root = Path(),
) -> int:
    """Write the gradebook as CSV for a learning-management system: a row for each student and lab, with its status."""
    root = find_course(root)
    from xinfer_lab.commands import export as command

    return command.export(lab or (), out=out, root=root)


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
    sandbox: Annotated[
        Isolation,
        typer.Option(help="bubblewrap refuses to ask without it; auto takes it where it works; none does without."),
    ] = Isolation.AUTO,
    root: Root = Path(),
) -> int:
    """Ask a marked notebook again with the very cases that it was marked with, and keep what came of it.

    The gradebook and the marked notebook stay as they are. Exit status 1: something came out otherwise than before.
    """
    root = find_course(root)
    from xinfer_lab.commands import dispute as command

    return command.dispute(lab, student, pieces=piece or (), out=out, sandbox=sandbox.value, root=root)


def replay(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `xinfer-lab dispute` wrote.")],
    case: Annotated[int | None, typer.Option(metavar="N", help="Only this case, counted from 1.")] = None,
) -> int:
    """Replay a student's recorded command stream in several orders, and show its hazards and its picture.

    None of the student's code runs. Exit status 1: a hazard or a state fault was found.
    """
    from xinfer_lab.commands import replay as command

    return command.replay(folder, case=case)
