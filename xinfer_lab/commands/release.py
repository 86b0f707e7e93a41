"""`xinfer-lab release`: labs/ from solutions/, the gradebook told, and the archive that students get."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from xinfer_lab.commands.courses import labs_of
from xinfer_lab.commands.faults import CommandError
from xinfer_lab.commands.output import output_file
from xinfer_lab.course.bundle import bundle as files_of
from xinfer_lab.course.bundle import write_bundle
from xinfer_lab.course.gradebook import CourseBook, GradebookError
from xinfer_lab.course.lab import find_lab
from xinfer_lab.course.release import drift, generate, leaks

__all__ = ["release"]


def release(labs: Sequence[str], *, bundle: bool, out: Path | None, check: bool, root: Path) -> int:
    """Release ``labs``, or all, and print what was done. 1 if something differs or is given away, else 0."""
    chosen = labs_of(root, labs)
    try:
        if not check:
            for lab in chosen:
                generate(root / "labs", root=root, lab=lab, gradebook=True)
        found = [*(drift(root=root) if check else ()), *leaks(root=root)]
        for fault in found:
            typer.echo(fault)
        if found:
            return 1
        if check:
            typer.echo("labs/ is in step with solutions/ and gives nothing away.")
        else:
            book = CourseBook(root)
            for lab in chosen:
                book.prepare(find_lab(root, lab))
            typer.echo(f"Released: {', '.join(chosen)}. labs/ gives nothing away, and the gradebook knows them.")
    except (RuntimeError, ValueError, GradebookError) as error:
        raise CommandError(str(error)) from error
    if bundle:
        path = out if out is not None else root / "release" / "xinfer-lab.zip"
        path.parent.mkdir(parents=True, exist_ok=True)
        with output_file(path) as made:
            write_bundle(files_of(root, chosen), made)
        typer.echo(f"For students: {path} ({path.stat().st_size:,} bytes).")
    return 0
