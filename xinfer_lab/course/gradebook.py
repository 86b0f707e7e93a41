"""nbgrader's gradebook, through its own interface: the one writer of marks, and what it says of a class."""

from __future__ import annotations

import contextlib
import glob
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from xinfer_lab.course.grade_cells import grade_cells
from xinfer_lab.course.job import Marked
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.nbgrader_process import nbgrader_environment, run_nbgrader
from xinfer_lab.course.notebook import Cell

__all__ = ["CourseBook", "GradebookError", "Score"]


class GradebookError(RuntimeError):
    """Marks could not be stored; the message has nbgrader's words."""


@dataclass(frozen=True, slots=True)
class Score:
    """What the gradebook says of one student's lab. ``by_hand``: a person has something to grade.

    ``score`` is before ``penalty`` points for coming late.
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
            into = f"--CourseDirectory.release_directory={Path(folder).resolve()}"
            try:
                run_nbgrader(self.root, "generate_assignment", lab.assignment, "--force", into)
            except RuntimeError as error:
                raise GradebookError(f"the gradebook cannot take {lab.assignment}: {error}") from None
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

    def write(self, lab: Lab, student: str, marked: Marked) -> None:
        """Store ``marked`` in the place of whatever there is for this student and lab: grades, notes, marked notebook.

        Raises `GradebookError`.
        """
        from nbgrader.converters.base import NbGraderException

        lines: list[str] = []
        with _in(self.root), _quiet(lines):
            converter = _converter(self._config, self._coursedir, lab, student, marked)
            try:
                converter.start()
            except NbGraderException as error:
                # nbgrader logs the traceback; its last line is the cause.
                causes = [line.strip().splitlines()[-1] for line in lines if line.startswith("Traceback")]
                raise GradebookError((causes or [str(error)])[-1]) from None

    def scores(self, assignment: str) -> dict[str, Score]:
        """What the gradebook says of ``assignment``, for every student that it knows; all zero where it has nothing."""
        from nbgrader.api import MissingEntry

        found: dict[str, Score] = {}
        with self.gradebook() as book:
            try:
                most = float(book.find_assignment(assignment).max_score)
            except MissingEntry:
                return {}
            for student in book.students:
                about = (student.id, student.first_name or "", student.last_name or "", student.email or "")
                try:
                    submission = book.find_submission(assignment, student.id)
                except MissingEntry:
                    found[student.id] = Score(*about, 0.0, most, 0.0, False, None)
                    continue
                penalty = float(submission.late_submission_penalty or 0.0)
                by_hand = bool(submission.needs_manual_grade)
                found[student.id] = Score(*about, float(submission.score), most, penalty, by_hand, submission.timestamp)
        return found

    @contextlib.contextmanager
    def gradebook(self) -> Iterator[Any]:
        """nbgrader's own `Gradebook`, open within the block."""
        with _in(self.root), _quiet():
            from nbgrader.api import Gradebook

            with Gradebook(self._coursedir.db_url, self._coursedir.course_id) as book:
                yield book


def _converter(config: Any, coursedir: Any, lab: Lab, student: str, marked: Marked) -> Any:
    from nbgrader.converters import Autograde

    from xinfer_lab.course.preprocessors import MARKED

    coursedir = type(coursedir)(config=config)
    coursedir.assignment_id, coursedir.student_id = lab.assignment, student

    class Store(Autograde):  # type: ignore[misc]
        """nbgrader's own autograde step for one submission whose marking is there already."""

        def init_notebooks(self) -> None:
            """The lab's notebook, whether the student has a file of that name or not."""
            folder = self._format_source(lab.assignment, student)
            self.assignments = {folder: [os.path.join(folder, lab.name)]}

        def init_single_notebook_resources(self, notebook_filename: str) -> Any:
            """nbgrader's, and the marking."""
            return {**super().init_single_notebook_resources(notebook_filename), MARKED: marked}

        def run_pre_convert_hook(self) -> None:
            """Files that were handed in stay as they are."""

    return Store(coursedir=coursedir, config=config, force=True)


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
