"""Mark a class: one job a submission, one writer of marks, and what is done stays done."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from xinfer_lab.course.gradebook import CourseBook, GradebookError
from xinfer_lab.course.handed_in import collect
from xinfer_lab.course.job import How, Job, Marked, mark_job, not_marked
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.marks import read_marks
from xinfer_lab.course.recording import RecordLimits
from xinfer_lab.course.sandbox import NoSandbox
from xinfer_lab.course.workers import Workers

__all__ = ["ClassError", "Outcome", "Progress", "autograde"]

MOST_TRIES = 3
"""How often a job is begun whose worker goes away. Whoever takes his worker with him thrice does it himself."""

HOPELESS = 3
"""When so many jobs fail before one succeeds, it is marking that fails, and nothing is written."""

STATE = ".xinfer-lab"
"""The folder in the course's that holds what a run has to remember."""


class ClassError(RuntimeError):
    """A class cannot be marked; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One student's marking is stored. ``trouble`` is why he was not marked, or empty."""

    student: str
    marked: Marked

    @property
    def trouble(self) -> str:
        """Why this student was not marked, or empty."""
        return self.marked.trouble


@dataclass(frozen=True, slots=True)
class Progress:
    """Students of this run: ``kept`` have marks already, ``done`` and ``failed`` got theirs now, ``left`` wait."""

    kept: int = 0
    done: int = 0
    failed: int = 0
    left: int = 0


Report = Callable[[Progress, Outcome | None], None]


def autograde(
    book: CourseBook,
    lab: Lab,
    workers: Workers,
    *,
    students: Sequence[str] = (),
    again: bool = False,
    sandbox: str = "auto",
    limits: RecordLimits | None = None,
    package: Path | None = None,
    report: Report = lambda progress, outcome: None,
) -> Progress:
    """Mark what was handed in for ``lab``, of ``students`` or of all, and store the marks.

    Who has marks for the same files, the same release and, with ``sandbox`` "bubblewrap", under isolation, keeps them
    unless ``again``. Blocks until all is stored; `KeyboardInterrupt` may leave some for the next call. Raises
    `ClassError`, `NoSandbox` or `GradebookError`.
    """
    with _only_one(book.root):
        handed_in = book.students(lab.assignment)
        unknown = sorted(set(students) - set(handed_in))
        if unknown:
            raise ClassError(f"nothing was handed in for {lab.assignment} by {', '.join(unknown)}")
        chosen = [student for student in handed_in if not students or student in students]
        if not chosen:
            raise ClassError(f"nothing was handed in: there is no {book.submitted(lab.assignment, 'STUDENT')}")
        book.prepare(lab)
        if again:
            for student in chosen:
                _forget(book, lab, student)
        secret = _secret(book.root, lab)
        how = How(sandbox, secret, (str(book.root),), limits, None if package is None else str(package))
        todo = [student for student in chosen if not _is_marked(book, lab, student, sandbox)]
        run = _Run(book, lab, workers, how, Progress(kept=len(chosen) - len(todo), left=len(todo)), report)
        run.go(todo)
        if not run.progress.failed and len(chosen) == len(handed_in):
            _secret_file(book.root, lab).unlink(missing_ok=True)
        return run.progress


class _Run:
    """The jobs of one run: which are under way, how often each was begun, what became of them."""

    def __init__(
        self, book: CourseBook, lab: Lab, workers: Workers, how: How, progress: Progress, report: Report
    ) -> None:
        self._book, self._lab, self._workers, self._how = book, lab, workers, how
        self.progress, self._report = progress, report
        self._waiting: deque[str] = deque()
        self._running: dict[Future[Marked], Job] = {}
        self._tries: dict[str, int] = {}
        self._held: list[tuple[Job, Marked]] = []
        self._unstored = 0

    def go(self, students: Sequence[str]) -> None:
        """Mark ``students``; returns when all are stored."""
        self._waiting.extend(students)
        self._report(self.progress, None)
        self._fill()
        while self._running:
            # In pieces: on Windows Ctrl-C does not end a wait.
            done, _ = wait(self._running, timeout=0.5, return_when=FIRST_COMPLETED)
            over = [(self._running.pop(future), future) for future in done]
            ready = [(job, self._outcome(job, future)) for job, future in over]
            self._fill()
            for job, marked in ready:
                if marked is not None:
                    self._take(job, marked)
        for job, marked in self._held:
            self._store(job, marked)

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self._workers.capacity():
            student = self._waiting.popleft()
            folder = self._book.submitted(self._lab.assignment, student)
            job = Job(student, self._lab, collect(folder, self._lab.name), self._how)
            self._tries[student] = self._tries.get(student, 0) + 1
            self._running[self._workers.executor.submit(mark_job, job)] = job

    def _outcome(self, job: Job, future: Future[Marked]) -> Marked | None:
        """The marking, or that there is none, or None where the job waits for another try."""
        try:
            return future.result()
        except NoSandbox:
            raise
        except self._workers.lost:
            why = f"the process that marked it came to an end {MOST_TRIES} times"
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        if self._tries[job.student] < MOST_TRIES:
            self._waiting.append(job.student)
            return None
        return not_marked(job, why)

    def _take(self, job: Job, marked: Marked) -> None:
        if marked.trouble and not self.progress.done and not self.progress.kept:
            # Perhaps nothing can be marked at all; then no mark of anybody's is touched.
            self._held.append((job, marked))
            if len(self._held) >= HOPELESS:
                raise ClassError(f"marking fails for everybody, and no marks were changed: {marked.trouble}")
            return
        self._store(job, marked)
        held, self._held = self._held, []
        for other, trouble in held:
            self._store(other, trouble)

    def _store(self, job: Job, marked: Marked) -> None:
        try:
            self._book.write(job.lab, job.student, marked)
        except GradebookError as error:
            self._unstored += 1
            if self._unstored >= HOPELESS and not self.progress.done:
                raise ClassError(f"marks cannot be stored: {error}") from None
            marked = not_marked(job, f"its marks could not be stored: {error}")
        now = self.progress
        self.progress = replace(
            now, done=now.done + (not marked.trouble), failed=now.failed + bool(marked.trouble), left=now.left - 1
        )
        self._report(self.progress, Outcome(job.student, marked))


def _marked_file(book: CourseBook, lab: Lab, student: str) -> Path:
    return book.autograded(lab.assignment, student) / lab.name


def _is_marked(book: CourseBook, lab: Lab, student: str, sandbox: str) -> bool:
    marks = read_marks(_marked_file(book, lab, student))
    if marks is None or (sandbox == "bubblewrap" and not marks.isolated):
        return False
    return marks.are_of(collect(book.submitted(lab.assignment, student), lab.name).version, lab.version)


def _forget(book: CourseBook, lab: Lab, student: str) -> None:
    """Make sure that this student is marked again, even if the run that wants it is broken off."""
    with contextlib.suppress(OSError):
        path = _marked_file(book, lab, student)
        path.parent.chmod(0o755)
        path.unlink()


def _secret_file(root: Path, lab: Lab) -> Path:
    return root / STATE / f"{lab.assignment}.json"


def _secret(root: Path, lab: Lab) -> str:
    """What the hidden cases of this run are drawn from. A run that goes on where one was broken off has the same, so
    that all are asked the same.
    """
    path = _secret_file(root, lab)
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["secret"])
    except (OSError, ValueError, KeyError, TypeError):
        secret = secrets.token_hex(16)
        path.write_text(json.dumps({"secret": secret}), encoding="utf-8")
        return secret


@contextmanager
def _only_one(root: Path) -> Iterator[None]:
    """Within the block no other process writes marks for the course in ``root``. Raises `ClassError` if one does."""
    folder = root / STATE
    folder.mkdir(exist_ok=True)
    path = folder / "autograde.lock"
    for _ in range(2):
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            break
        except FileExistsError:
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            if text.isdigit() and psutil.pid_exists(int(text)) and int(text) != os.getpid():
                raise ClassError(f"process {text} is marking this course; wait for it, or remove {path}") from None
            path.unlink(missing_ok=True)
    else:
        raise ClassError(f"another process is marking this course; wait for it, or remove {path}")
    os.write(descriptor, str(os.getpid()).encode())
    os.close(descriptor)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
