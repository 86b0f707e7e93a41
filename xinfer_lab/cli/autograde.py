"""`xinfer-lab autograde`: mark a class, with a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from xinfer_lab.cli.courses import labs_of
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.course.autograde import ClassError, Outcome, Progress
from xinfer_lab.course.autograde import autograde as mark_class
from xinfer_lab.course.cluster import NoCluster, dask_workers
from xinfer_lab.course.database import GradebookError
from xinfer_lab.course.gradebook import CourseBook
from xinfer_lab.course.interrupts import Interrupts, leave, one_interrupt
from xinfer_lab.course.lab import find_lab
from xinfer_lab.course.lock import Busy
from xinfer_lab.course.sandbox import NoSandbox, open_sandbox
from xinfer_lab.course.workers import local_workers

__all__ = ["autograde"]


def autograde(
    lab: str,
    *,
    students: Sequence[str],
    jobs: int | None,
    scheduler: str | None,
    sandbox: str,
    again: bool,
    root: Path,
) -> int:
    """Mark, and print the outcome. 1 if a student was not marked, 130 after Ctrl-C, else 0."""
    labs_of(root, [lab])
    screen, interrupts = _Screen(), Interrupts()
    try:
        found = find_lab(root, lab)
        if scheduler is None:
            screen.say(open_sandbox(sandbox, hidden=(root,)).words)
        book = CourseBook(root)
        with (
            one_interrupt() as interrupts,
            local_workers(jobs) if scheduler is None else dask_workers(scheduler, jobs) as workers,
            screen.bar() as show,
        ):
            screen.say(f"{lab}: {workers.words}.")
            mark_class(book, found, workers, students=students, again=again, sandbox=sandbox, report=show)
    except KeyboardInterrupt:
        screen.say(f"Stopped: {screen.sentence()}. Run the same command to continue.")
        return 130 if interrupts.first is None else leave(130)
    except (NoCluster, ClassError, GradebookError) as error:
        if screen.progress.done:
            screen.say(f"Stopped: {screen.sentence()}.")
        raise CommandError(str(error)) from error
    except (ValueError, NoSandbox, Busy) as error:
        raise CommandError(str(error)) from error
    typer.echo(f"{lab}: {screen.sentence()}.")
    if screen.troubles:
        typer.echo(f"These need attention; they have no points until that is done ({len(screen.troubles)}):")
    for student, trouble in screen.troubles:
        typer.echo(f"  {student} was not marked: {trouble}")
    if screen.progress.older:
        typer.echo(
            f"{screen.progress.older} of those who had marks were marked by another version of the grader; "
            "--again marks them with this one."
        )
    if screen.bare and scheduler is not None:
        typer.echo(f"NOT isolated: the code of {screen.bare} students, on workers without bubblewrap.")
    return 1 if screen.troubles else 0


class _Screen:
    """What is shown while a class is marked: a bar on a terminal, a line for each twentieth elsewhere."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.troubles: list[tuple[str, str]] = []
        self.bare = 0
        self._terminal = sys.stderr.isatty()
        self._console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """Say ``text`` on standard error."""
        self._console.print(text)

    def sentence(self) -> str:
        """How far it is."""
        now = self.progress
        kept = f", {now.kept} had marks before" if now.kept else ""
        return f"{now.done} marked, {now.failed} not marked, {now.left} left{kept}"

    @contextmanager
    def bar(self) -> Iterator[Callable[[Progress, Outcome | None], None]]:
        """What to call with each student's outcome."""
        look = (
            TextColumn("{task.fields[words]}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Bar(*look, console=self._console, disable=not self._terminal, transient=True) as bar:
            task = bar.add_task("", total=None, words="")

            def show(now: Progress, outcome: Outcome | None) -> None:
                self._count(now, outcome)
                over, total = now.done + now.failed, now.done + now.failed + now.left
                words = f"{now.done} done, {now.failed} failed, {now.left} left"
                bar.update(task, completed=over, total=total, words=words)
                if not self._terminal and outcome is not None and over % max(1, total // 20) == 0:
                    self.say(words)

            yield show

    def _count(self, now: Progress, outcome: Outcome | None) -> None:
        self.progress = now
        if outcome is not None and outcome.trouble:
            self.troubles.append((outcome.student, outcome.trouble))
        elif outcome is not None:
            self.bare += not outcome.marked.isolated
