"""`xinfer-lab dispute`: mark a marked notebook again with its own cases, and keep the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from xinfer_lab.cli.courses import labs_of
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.screen import print_table
from xinfer_lab.course.dispute import Heard, hear
from xinfer_lab.course.lab import find_lab
from xinfer_lab.course.sandbox import NoSandbox, open_sandbox
from xinfer_lab.course.verifier_client import MarkingError

__all__ = ["dispute"]


def dispute(lab: str, student: str, *, pieces: Sequence[str], out: Path | None, sandbox: str, root: Path) -> int:
    """Print each grade cell's verdict then and now, and write cases, recordings and reports below ``out``.

    0 if all verdicts are as before, 1 if not. Raises `CommandError`.
    """
    labs_of(root, [lab])
    try:
        known = find_lab(root, lab)
        path = root / "autograded" / student / lab / known.name
        if not path.is_file():
            raise CommandError(f"{student} has no marked notebook of {lab}: {path} is missing; mark it first")
        where = open_sandbox(sandbox, hidden=(root,))
        heard = hear(known, path, where, only=pieces)
    except (ValueError, NoSandbox, MarkingError) as error:
        raise CommandError(str(error)) from None
    if not heard:
        there = ", ".join(cell.grade_id for cell in known.graded if not cell.by_hand)
        raise CommandError(f"{lab} has no grade cell {', '.join(pieces)}; it has {there}")
    typer.echo(where.words)
    print_table(["graded", "then", "now", ""], [_row(one) for one in heard], left=4)
    folder = root / "disputes" / student / lab if out is None else out
    for one in heard:
        for asked in one.asked:
            inside = asked.write(folder)
            if not asked.report.passed:
                typer.echo(f"{asked.report}\n  kept in {inside}\n")
    changed = [one.now.grade_id for one in heard if not one.same]
    typer.echo(f"Cases, recordings and reports are in {folder}.")
    typer.echo("Every verdict is as before." if not changed else f"Different from before: {', '.join(changed)}.")
    return 1 if changed else 0


def _row(one: Heard) -> list[str]:
    then = "not marked" if one.stands is None else one.stands.status.value
    words = "the same" if one.same else "DIFFERENT"
    if not one.same and one.stands is not None and one.stands.status is one.now.status:
        words = "DIFFERENT: the same status for another reason"
    return [one.now.grade_id, then, one.now.status.value, words]
