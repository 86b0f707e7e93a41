"""Commands on a class: feedback."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["feedback"]

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
    from xinfer_lab.commands import feedback as command

    return command.feedback(lab, students=student or (), root=root)
