"""Commands on a class: release, roster, due, autograde, grade, feedback, export, similar, dispute, replay."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from xinfer_lab.cli.courses import find_course

__all__ = ["autograde", "dispute", "due", "export", "feedback", "grade", "release", "replay", "roster", "similar"]

Root = Annotated[Path, typer.Option(metavar="DIR", help="The course's folder.")]
Lab = Annotated[str, typer.Argument(metavar="LAB", help="The lab's folder in solutions/, such as lab1-residency.")]


class Isolation(StrEnum):
    """Where students' code runs."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    NONE = "none"
    AS_ROOT = "as-root"


class Table(StrEnum):
    """The shape of an exported table."""

    CSV = "csv"
    CANVAS = "canvas"
    MOODLE = "moodle"


def release(
    lab: Annotated[
        list[str] | None, typer.Argument(metavar="[LAB]...", help="Only these labs, such as lab1-residency.")
    ] = None,
    bundle: Annotated[
        bool, typer.Option("--bundle", help="Also write the archive for students, with the labs named.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.zip", help="The archive's name; by default release/xinfer-lab.zip.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; report what differs or leaks.")] = False,
    root: Root = Path(),
) -> int:
    """Make labs/ from solutions/, enter the labs into the gradebook, and check that no answer leaks.

    The archive of `--bundle` has the labs, the package and what sets them up. What a lab asks for cannot be read in it.
    Exit status 1: labs/ differs from solutions/ (with `--check`), or an answer leaks.
    """
    root = find_course(root)
    from xinfer_lab.cli import release as command

    return command.release(lab or (), bundle=bundle or out is not None, out=out, check=check, root=root)


def autograde(
    lab: Lab,
    student: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this student; may be given several times.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Submissions at a time; by default one for each core.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on a Dask cluster, such as tcp://10.0.0.1:8786.")
    ] = None,
    sandbox: Annotated[
        Isolation,
        typer.Option(
            help="bubblewrap: mark isolated or not at all; auto: isolated where possible; none: not isolated."
        ),
    ] = Isolation.AUTO,
    again: Annotated[bool, typer.Option("--again", help="Also mark students who have marks already.")] = False,
    root: Root = Path(),
) -> int:
    """Mark the notebooks in submitted/STUDENT/LAB, many at a time, into nbgrader's gradebook.

    Students who have marks for the same files keep them, so an interrupted run continues when you start it again.
    Exit status 1: at least one student was not marked; the output says why.
    """
    root = find_course(root)
    from xinfer_lab.cli import autograde as command

    return command.autograde(
        lab, students=student or (), jobs=jobs, scheduler=scheduler, sandbox=sandbox.value, again=again, root=root
    )


def export(
    lab: Annotated[list[str] | None, typer.Argument(metavar="[LAB]...", help="Only these labs.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Where to write it; by default standard output.")
    ] = None,
    kind: Annotated[
        Table, typer.Option("--format", help="csv: all that is known; canvas, moodle: what those import as it is.")
    ] = Table.CSV,
    partial: Annotated[
        bool, typer.Option("--partial", help="For canvas and moodle: also points without those of written answers.")
    ] = False,
    root: Root = Path(),
) -> int:
    """Write the gradebook as a table: a row for each student and lab with its status, or as Canvas or Moodle take it.

    A score that is not complete is left out of Canvas's and Moodle's tables, and it is said how many there are.
    """
    root = find_course(root)
    from xinfer_lab.cli import export as command

    return command.export(lab or (), out=out, root=root, kind=kind.value, partial=partial)


def roster(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Canvas's or Moodle's export, or one of your own.")],
    root: Root = Path(),
) -> int:
    """Put the people of a class into the gradebook: names and addresses, and Canvas's numbers.

    Columns are found by their names: student (or username, SIS Login ID), first_name, last_name, email. Nobody is taken
    out.
    """
    root = find_course(root)
    from xinfer_lab.cli import roster as command

    return command.roster(file, root=root)


def due(
    lab: Lab,
    when: Annotated[
        str | None, typer.Argument(metavar="[TIME]", help="Such as 2026-12-10T23:59+01:00; left out, it is told.")
    ] = None,
    never: Annotated[bool, typer.Option("--never", help="Take the due date away.")] = False,
    root: Root = Path(),
) -> int:
    """Say when a lab is due, or set it. What coming late costs is nbgrader's setting, in nbgrader_config.py."""
    root = find_course(root)
    from xinfer_lab.cli import roster as command

    return command.due(lab, when, never=never, root=root)


def feedback(
    lab: Lab,
    student: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this student; may be given several times.")
    ] = None,
    archive: Annotated[
        Path | None, typer.Option("--zip", metavar="FILE.zip", help="Put all pages into one archive, too.")
    ] = None,
    root: Root = Path(),
) -> int:
    """Write the pages that students get back: what was expected, what happened and why. Hidden tests stay hidden."""
    root = find_course(root)
    from xinfer_lab.cli import feedback as command

    return command.feedback(lab, students=student or (), archive=archive, root=root)


def grade(
    lab: Lab,
    browse: Annotated[bool, typer.Option("--browse/--no-browse", help="Open the page in a browser.")] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Its port; 0 for any that is free.")] = 0,
    root: Root = Path(),
) -> int:
    """Grade written answers on one page, question by question, with the rubric and by keyboard.

    Names are not shown; equal texts are graded once. Points and comments go into the gradebook, as Formgrader's do.
    """
    root = find_course(root)
    from xinfer_lab.cli import grade as command

    return command.grade(lab, browse=browse, port=port, root=root)


def similar(
    lab: Lab,
    most: Annotated[int, typer.Option(min=1, metavar="N", help="Pairs to show.")] = 20,
    share: Annotated[
        float, typer.Option(min=0.0, max=1.0, metavar="X", help="Part of the rare code that two must have in common.")
    ] = 0.5,
    root: Root = Path(),
) -> int:
    """Say which marked submissions are alike where few others are: in code, comments, and the commands they issue.

    Names of variables, comments and order change nothing in the comparison of code; what the release gives, or many
    have, counts for nothing. It is evidence to look at, no proof.
    """
    root = find_course(root)
    from xinfer_lab.cli import similar as command

    return command.similar(lab, most=most, share=share, root=root)


def dispute(
    lab: Lab,
    student: Annotated[str, typer.Argument(metavar="STUDENT", help="The student whose notebook to mark again.")],
    piece: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this piece or grade cell; may be given several times."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to keep the evidence; by default disputes/STUDENT/LAB.")
    ] = None,
    sandbox: Annotated[
        Isolation,
        typer.Option(help="bubblewrap: run isolated or not at all; auto: isolated where possible; none: not isolated."),
    ] = Isolation.AUTO,
    root: Root = Path(),
) -> int:
    """Mark a marked notebook again with the same cases, and keep the evidence.

    The gradebook and the marked notebook stay as they are. Exit status 1: a verdict differs from before.
    """
    root = find_course(root)
    from xinfer_lab.cli import dispute as command

    return command.dispute(lab, student, pieces=piece or (), out=out, sandbox=sandbox.value, root=root)


def replay(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `xinfer-lab dispute` wrote.")],
    case: Annotated[int | None, typer.Option(metavar="N", help="Only this case, counted from 1.")] = None,
) -> int:
    """Replay a student's recorded command stream in several orders, and show its hazards and its timeline.

    It runs none of the student's code. Exit status 1: it found a hazard or a state fault.
    """
    from xinfer_lab.cli import replay as command

    return command.replay(folder, case=case)
