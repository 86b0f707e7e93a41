"""nbgrader's gradebook, through its own interface: the one writer of marks, and what it says of a class."""

from __future__ import annotations

import contextlib
import glob
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from xinfer_lab.course.database import GradebookError, refuse_unusable, unusable
from xinfer_lab.course.grade_cells import grade_cells
from xinfer_lab.course.job import Marked
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.nbgrader_process import nbgrader_environment
from xinfer_lab.course.notebook import Cell
from xinfer_lab.course.release import generate

__all__ = ["CourseBook", "GradebookError", "Score"]


@dataclass(frozen=True, slots=True)
class Score:
    """What the gradebook says of one student's lab. ``by_hand``: a person has something to grade.

    ``score`` is before ``penalty`` points for coming late; ``stored``: the gradebook has marks at all; ``late`` are the
    seconds after the lab was due, None where one of the two times is not known; ``lms`` is Canvas's number.
    """

    student: str
    first_name: str
    last_name: str
    email: str
    score: float
    most: float
    penalty: float
    by_hand: bool
    timestamp: datetime | None
    stored: bool = False
    late: float | None = None
    lms: str = ""


class CourseBook:
    """The gradebook of the course in ``root``, with the settings of its nbgrader_config.py."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        with _in(self.root), _quiet():
            from nbgrader.apps import NbGrader
            from nbgrader.coursedir import CourseDirectory

            application = NbGrader()
            application.coursedir = CourseDirectory(parent=application)
            application.load_config_file()
            self._config = application.config
            self._config.CourseDirectory.root = str(self.root)
            self._coursedir = CourseDirectory(config=self._config)

    def submitted(self, assignment: str, student: str) -> Path:
        """The folder of what a student handed in."""
        return self._folder(self._coursedir.submitted_directory, student, assignment)

    def autograded(self, assignment: str, student: str) -> Path:
        """The folder of a student's marked notebooks."""
        return self._folder(self._coursedir.autograded_directory, student, assignment)

    def _folder(self, step: str, student: str, assignment: str) -> Path:
        return Path(self.root, self._coursedir.format_path(step, student, assignment))

    def students(self, assignment: str) -> list[str]:
        """Who handed in something for ``assignment``, in order."""
        folders = glob.glob(self._coursedir.format_path(self._coursedir.submitted_directory, "*", assignment))
        place = self.submitted(assignment, "*").parts.index("*")
        return sorted({Path(folder).parts[place] for folder in folders if os.path.isdir(folder)})

    def prepare(self, lab: Lab) -> None:
        """See that the gradebook knows ``lab`` as it was released. Blocks for seconds where it does not.

        Raises `GradebookError` where students' marks stand in the way of the change.
        """
        if self._knows(lab):
            return
        with tempfile.TemporaryDirectory() as folder:
            try:
                generate(Path(folder, "labs"), root=self.root, lab=lab.assignment, gradebook=True)
            except RuntimeError as error:
                raise GradebookError(str(error)) from None
        if not self._knows(lab):
            raise GradebookError(f"labs/{lab.assignment} is not what solutions/ gives: release it first")

    def _knows(self, lab: Lab) -> bool:
        from nbgrader.api import MissingEntry

        with self.gradebook() as book:
            try:
                notebook = book.find_notebook(Path(lab.name).stem, lab.assignment)
            except MissingEntry:
                return False
            sources = {cell.name: cell for cell in notebook.source_cells}
            points = {cell.name: cell.max_score for cell in notebook.grade_cells}
            there = {cell.grade_id: cell for cell in lab.released.cells if cell.grade_id}
            graded = {cell.grade_id: cell for cell in lab.graded}
            if sources.keys() != there.keys() or points.keys() != graded.keys():
                return False
            # A check stands in the gradebook with its hidden tests, which the released notebook lacks.
            checks = [
                Cell(sources[name].cell_type, sources[name].source, mark={**there[name].mark, "points": points[name]})
                for name in points
            ]
            given = [cell for name, cell in sources.items() if cell.locked and name not in points]
            same = all(there[cell.name].source == cell.source for cell in given)
            return same and {cell.grade_id: cell for cell in grade_cells(checks)} == graded

    def write(self, lab: Lab, markings: Mapping[str, Marked]) -> dict[str, str]:
        """Store ``markings`` by student in the place of whatever there is for this lab: grades, notes, marked notebook.

        What could not be stored comes back, with the reason. Raises `GradebookError` where nothing can be stored.
        """
        try:
            self._write(lab, markings)
            return {}
        except GradebookError:
            raise
        except Exception as error:
            # One of them does not fit: the others are not to suffer for it.
            if len(markings) == 1:
                words = str(error).strip().splitlines()
                return dict.fromkeys(markings, f"{type(error).__name__}: {words[0] if words else 'no details'}")
        failed: dict[str, str] = {}
        for student, marked in markings.items():
            failed |= self.write(lab, {student: marked})
        return failed

    def _write(self, lab: Lab, markings: Mapping[str, Marked]) -> None:
        with self.gradebook() as book:
            from nbgrader.converters import Autograde

            from xinfer_lab.course.store import Store

            # One transaction for all: nbgrader's own methods commit whenever they are called.
            book.db.commit = book.db.flush
            try:
                Store(book, lab, Autograde(coursedir=self._coursedir, config=self._config, force=True)).write(markings)
            except BaseException:
                book.db().rollback()
                raise

    def scores(self, assignment: str) -> dict[str, Score]:
        """What the gradebook says of ``assignment``, for every student that it knows; all zero where it has nothing."""
        from nbgrader.api import MissingEntry, Student

        found: dict[str, Score] = {}
        with self.gradebook() as book:
            try:
                lab = book.find_assignment(assignment)
                most, due = float(lab.max_score), lab.duedate
            except MissingEntry:
                return {}
            sums = _sums(book, assignment)
            columns = (Student.id, Student.first_name, Student.last_name, Student.email, Student.lms_user_id)
            for student, first, last, email, lms in book.db.query(*columns).order_by(Student.id):
                about = (student, first or "", last or "", email or "")
                if student in sums:
                    score, by_hand, penalty, at = sums[student]
                    late = None if at is None or due is None else max(0.0, (at - due).total_seconds())
                    found[student] = Score(*about, score, most, penalty, by_hand, at, True, late, lms or "")
                else:
                    found[student] = Score(*about, 0.0, most, 0.0, False, None, lms=lms or "")
        return found

    def stored(self, assignment: str) -> set[str]:
        """Whose marks of ``assignment`` the gradebook has."""
        from nbgrader.api import Assignment, SubmittedAssignment

        with self.gradebook() as book:
            rows = (
                book.db.query(SubmittedAssignment.student_id)
                .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
                .filter(Assignment.name == assignment)
            )
            return {student for (student,) in rows}

    @contextlib.contextmanager
    def gradebook(self) -> Iterator[Any]:
        """nbgrader's own `Gradebook`, open within the block. Raises `GradebookError` where the database is no use."""
        with _in(self.root), _quiet():
            from nbgrader.api import Gradebook
            from sqlalchemy.exc import DBAPIError

            refuse_unusable(self._coursedir.db_url)
            try:
                with Gradebook(self._coursedir.db_url, self._coursedir.course_id) as book:
                    yield book
            except DBAPIError as error:
                raise unusable(self._coursedir.db_url, str(error.orig)) from None


def _sums(book: Any, assignment: str) -> dict[str, tuple[float, bool, float, datetime | None]]:
    """By student: score before the penalty, whether a person has something to grade, penalty, when it was handed in.

    Two questions for the whole class: nbgrader's own properties ask two for each submission.
    """
    from nbgrader.api import Assignment, Grade, SubmittedAssignment, SubmittedNotebook
    from sqlalchemy import func

    db = book.db
    scores = (
        db.query(SubmittedNotebook.assignment_id, func.sum(Grade.score), func.max(Grade.needs_manual_grade))
        .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
        .group_by(SubmittedNotebook.assignment_id)
    )
    graded = {key: (float(score or 0.0), bool(by_hand)) for key, score, by_hand in scores}
    late = func.coalesce(func.sum(SubmittedNotebook.late_submission_penalty), 0.0)
    rows = (
        db.query(SubmittedAssignment.student_id, SubmittedAssignment.id, SubmittedAssignment.timestamp, late)
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .filter(Assignment.name == assignment)
        .group_by(SubmittedAssignment.id)
    )
    return {student: (*graded.get(key, (0.0, False)), float(penalty), at) for student, key, at, penalty in rows}


@contextlib.contextmanager
def _in(folder: Path) -> Iterator[None]:
    """Within the block ``folder`` is the current one, and what nbgrader starts by name is found."""
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = nbgrader_environment(folder)["PATH"]
    with contextlib.chdir(folder):
        try:
            yield
        finally:
            os.environ["PATH"] = before


class _Lines(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())


@contextlib.contextmanager
def _quiet(lines: list[str] | None = None) -> Iterator[None]:
    """Within the block nbgrader's log goes to ``lines``, errors alone, and the warnings of its libraries nowhere."""
    import traitlets.log

    logger = traitlets.log.get_logger()
    if not isinstance(logger, logging.Logger):
        logger = logger.logger
    handler, others, spread = _Lines([] if lines is None else lines), logger.handlers[:], logger.propagate
    logger.handlers, logger.propagate = [handler], False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.handlers, logger.propagate = others, spread
