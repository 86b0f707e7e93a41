"""Mark a class: one job a submission, one writer of marks, and what is done stays done."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from pathlib import Path

from xinfer_lab.course.gradebook import CourseBook
from xinfer_lab.course.handed_in import collect, signature
from xinfer_lab.course.job import How, Job, Marked, grader_of, mark_job, not_marked
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.lock import STATE, only_one
from xinfer_lab.course.mark_stamp import Marks, read_marks
from xinfer_lab.course.package_view import PACKAGE
from xinfer_lab.course.recorder_client import RecordLimits
from xinfer_lab.course.sandbox import NoSandbox
from xinfer_lab.course.store import before
from xinfer_lab.course.verifier_client import Killed
from xinfer_lab.course.workers import Workers

__all__ = ["ClassError", "Outcome", "Progress", "autograde"]

MOST_TRIES = 3
"""How often a job is begun whose worker goes away, or whose sandbox something outside kills."""

HOPELESS = 3
"""When so many jobs fail before one succeeds, it is marking that fails, and nothing is written."""

BATCH = 50
"""Students whose marks are stored in one go."""


class ClassError(RuntimeError):
    """A class cannot be marked; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One student's marking is stored. ``trouble`` is why they were not marked, or empty."""

    student: str
    marked: Marked

    @property
    def trouble(self) -> str:
        """Why this student was not marked, or empty."""
        return self.marked.trouble


@dataclass(frozen=True, slots=True)
class Progress:
    """Students of this run: ``kept`` have marks already, ``done`` got theirs now, ``failed`` got none, ``left`` wait.

    ``older`` are those of ``kept`` whom another version of the grader marked.
    """

    kept: int = 0
    done: int = 0
    failed: int = 0
    left: int = 0
    older: int = 0


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
    `ClassError`, `Busy`, `NoCluster`, `NoSandbox` or `GradebookError`.
    """
    with only_one(book.root, f"marking {lab.assignment}"):
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
        stored = book.stored(lab.assignment)
        known = {student: _marks(book, lab, student, sandbox) for student in chosen if student in stored}
        kept = {student: marks for student, marks in known.items() if marks is not None}
        todo = [student for student in chosen if student not in kept]
        grader = grader_of(package or PACKAGE)
        older = sum(marks.grader != grader for marks in kept.values())
        run = _Run(book, lab, workers, how, Progress(kept=len(kept), left=len(todo), older=older), report)
        run.go(todo)
        if not run.broken and len(chosen) == len(handed_in):
            _secret_file(book.root, lab).unlink(missing_ok=True)
        return run.progress


class _Run:
    """The jobs of one run: which are under way, how often each was begun, how they ended."""

    def __init__(
        self, book: CourseBook, lab: Lab, workers: Workers, how: How, progress: Progress, report: Report
    ) -> None:
        self._book, self._lab, self._workers, self._how = book, lab, workers, how
        self.progress, self._report = progress, report
        self._waiting: deque[str] = deque()
        self._running: dict[Future[Marked], Job] = {}
        self._tries: dict[str, int] = {}
        self._held: dict[str, tuple[Job, Marked]] = {}
        self.broken = 0
        """How many markings broke off, through no fault of what was handed in."""

    def go(self, students: Sequence[str]) -> None:
        """Mark ``students``; returns when all are stored."""
        self._waiting.extend(students)
        self._report(self.progress, None)
        self._fill()
        while self._running:
            # In pieces: on Windows Ctrl-C does not end a wait.
            done, _ = wait(self._running, timeout=0.5, return_when=FIRST_COMPLETED)
            over = [(self._running.pop(future), future) for future in done]
            ready = {job.student: (job, self._outcome(job, future)) for job, future in over}
            self._workers.check()
            self._fill()
            self._take({student: (job, marked) for student, (job, marked) in ready.items() if marked is not None})
        self._store(self._held)

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self._workers.capacity():
            student = self._waiting.popleft()
            folder = self._book.submitted(self._lab.assignment, student)
            job = Job(student, self._lab, collect(folder), self._how)
            self._tries[student] = self._tries.get(student, 0) + 1
            self._running[self._workers.executor.submit(mark_job, job)] = job

    def _outcome(self, job: Job, future: Future[Marked]) -> Marked | None:
        """The marking, or that there is none, or None where the job waits for another try."""
        try:
            return future.result()
        except NoSandbox:
            raise
        except Killed as error:
            why = f"{error} ({MOST_TRIES} times; this is the machine's fault, see its memory)"
        except self._workers.lost:
            why = f"the process that marked it ended {MOST_TRIES} times"
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        if self._tries[job.student] < MOST_TRIES:
            self._waiting.append(job.student)
            return None
        return not_marked(job.lab, job.handed_in, why)

    def _take(self, ready: Mapping[str, tuple[Job, Marked]]) -> None:
        """Store ``ready``, unless it may be that nothing can be marked at all; then nobody's marks are touched."""
        broken = {student: one for student, one in ready.items() if one[1].trouble and not one[1].unreadable}
        if len(broken) == len(ready) and not self.progress.done and not self.progress.kept:
            self._held |= broken
            if len(self._held) >= HOPELESS:
                words = next(iter(self._held.values()))[1].trouble
                raise ClassError(f"marking fails for everybody, and no marks were changed: {words}")
            return
        held, self._held = self._held, {}
        self._store({**ready, **held})

    def _store(self, ready: Mapping[str, tuple[Job, Marked]]) -> None:
        students = list(ready)
        for start in range(0, len(students), BATCH):
            part = {student: ready[student] for student in students[start : start + BATCH]}
            failed = self._book.write(self._lab, {student: marked for student, (_, marked) in part.items()})
            if len(failed) >= HOPELESS and len(failed) == len(part) and not self.progress.done:
                raise ClassError(f"marks cannot be stored: {next(iter(failed.values()))}")
            for student, (job, marked) in part.items():
                if student in failed:
                    marked = not_marked(job.lab, job.handed_in, f"its marks could not be stored: {failed[student]}")
                self._count(student, marked)

    def _count(self, student: str, marked: Marked) -> None:
        now = self.progress
        self.broken += bool(marked.trouble) and not marked.unreadable
        self.progress = replace(
            now, done=now.done + (not marked.trouble), failed=now.failed + bool(marked.trouble), left=now.left - 1
        )
        self._report(self.progress, Outcome(student, marked))


def _marked_file(book: CourseBook, lab: Lab, student: str) -> Path:
    return book.autograded(lab.assignment, student) / lab.name


def _marks(book: CourseBook, lab: Lab, student: str, sandbox: str) -> Marks | None:
    """The student's marks where they are those of what lies there now, else None."""
    marks = read_marks(_marked_file(book, lab, student))
    if marks is None or (sandbox == "bubblewrap" and not marks.isolated):
        return None
    folder = book.submitted(lab.assignment, student)
    # Files that nobody has touched need not be read.
    submission = marks.submission if marks.signature == signature(folder) else collect(folder).version
    return marks if marks.are_of(submission, lab.version) else None


def _forget(book: CourseBook, lab: Lab, student: str) -> None:
    """Make sure that this student is marked again, even if the run that wants it is broken off.

    The notebook is set aside: `Store` looks there for what a person has graded already.
    """
    with contextlib.suppress(OSError):
        path = _marked_file(book, lab, student)
        path.parent.chmod(0o755)
        path.replace(before(path))


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
