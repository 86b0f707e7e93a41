"""A small course with a class that is marked as a whole, for the tests of what an instructor runs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from unittest.mock import patch

from tests.marking import LIMITS
from tests.test_course_nbgrader import LAB, Class
from xinfer_lab.course import autograde as running
from xinfer_lab.course.autograde import Outcome, Progress, Report, autograde
from xinfer_lab.course.gradebook import CourseBook
from xinfer_lab.course.job import Job, Marked
from xinfer_lab.course.lab import Lab, find_lab
from xinfer_lab.course.mark_stamp import Marks, read_marks
from xinfer_lab.course.workers import Workers

__all__ = ["LAB", "SmallClass", "remembered"]


class SmallClass(Class):
    """The small lab, and what is done with it at once for all."""

    def lab(self, name: str = LAB) -> Lab:
        return find_lab(self.root, name)

    def book(self) -> CourseBook:
        return CourseBook(self.root)

    def mark(
        self, workers: Workers, *, students: tuple[str, ...] = (), again: bool = False,
        report: Report = lambda progress, outcome: None, sandbox: str = "auto",
    ) -> tuple[Progress, list[Outcome]]:  # fmt: skip
        """Mark; the progress at the end, and each outcome."""
        outcomes: list[Outcome] = []

        def both(progress: Progress, outcome: Outcome | None) -> None:
            if outcome is not None:
                outcomes.append(outcome)
            report(progress, outcome)

        progress = autograde(
            self.book(), self.lab(), workers, students=students, again=again, sandbox=sandbox, limits=LIMITS,
            package=self.package, report=both,
        )  # fmt: skip
        return progress, outcomes

    def marks(self, student: str) -> Marks:
        found = read_marks(self.root / "autograded" / student / LAB / "lab.ipynb")
        assert found is not None, f"{student} has no marks"
        return found

    def statuses(self, student: str) -> dict[str, str]:
        return {name.removeprefix("check-"): status.value for name, status in self.marks(student).statuses.items()}

    def put(self, student: str, name: str, content: bytes) -> None:
        folder = self.root / "submitted" / student / LAB
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@contextmanager
def remembered() -> Iterator[Workers]:
    """A worker that marks what it has not seen before, and has the same to say of the same files: for tests of what
    is done with markings.
    """
    known: dict[tuple[str, str], Marked] = {}
    real = running.mark_job

    def mark_job(job: Job) -> Marked:
        key = job.handed_in.version, job.how.sandbox
        if key not in known:
            known[key] = real(job)
        return known[key]

    with ThreadPoolExecutor(1) as executor, patch.object(running, "mark_job", mark_job):
        yield Workers(executor, lambda: 1, (), "1 job at a time")
