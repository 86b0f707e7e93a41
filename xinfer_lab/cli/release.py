"""`xinfer-lab release`: makes labs/ from solutions/, enters them into the gradebook, writes the students' archive."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from xinfer_lab.cli.courses import labs_of
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.output import output_file
from xinfer_lab.course.bundle import bundle as files_of
from xinfer_lab.course.bundle import package_of, write_bundle
from xinfer_lab.course.gradebook import CourseBook
from xinfer_lab.course.lab import find_lab
from xinfer_lab.course.lock import only_one
from xinfer_lab.course.release import drift, generate, leaks

__all__ = ["release"]


def release(labs: Sequence[str], *, bundle: bool, out: Path | None, check: bool, root: Path) -> int:
    """Release ``labs``, or all, and print what was done. 1 if something differs or is given away, else 0."""
    chosen = labs_of(root, labs)
    if bundle and not labs and len(chosen) > 1:
        raise CommandError(
            f"--bundle ships the labs that you name, such as: xinfer-lab release {chosen[0]} --bundle "
            "(each lab begins with answers to the one before it)"
        )
    try:
        package = package_of(root) if bundle else root
        if not check:
            with only_one(root, f"releasing {', '.join(chosen)}"):
                _make(chosen, root)
        found = [*(drift(root=root) if check else ()), *leaks(root=root)]
    except (RuntimeError, ValueError) as error:
        raise CommandError(str(error)) from error
    for fault in found:
        typer.echo(fault)
    if found:
        return 1
    if check:
        typer.echo("labs/ is in step with solutions/ and gives nothing away.")
    else:
        typer.echo(f"Released: {', '.join(chosen)}. labs/ gives nothing away, and the gradebook knows them.")
    if bundle:
        path = out if out is not None else root / "release" / "xinfer-lab.zip"
        path.parent.mkdir(parents=True, exist_ok=True)
        with output_file(path) as made:
            write_bundle(files_of(root, chosen, package), made)
        typer.echo(f"For students: {path} ({path.stat().st_size:,} bytes), with {', '.join(chosen)}.")
    return 0


def _make(labs: Sequence[str], root: Path) -> None:
    """Release ``labs``, and see that the gradebook knows them."""
    book = CourseBook(root)
    for lab in labs:
        with book.gradebook():
            pass  # where it is no use nothing is begun
        generate(root / "labs", root=root, lab=lab, gradebook=True)
        book.prepare(find_lab(root, lab))
