"""Marks into nbgrader's gradebook and into autograded/: what its own autograde step would leave, many students at once.

nbgrader's step opens the gradebook six times a student and commits after each cell. Here one transaction takes all
students whose markings are there. First the old notebook goes, then the marks are stored, then the new notebook is
written: so a notebook that is there has its marks in the gradebook, wherever a run is broken off.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from sqlalchemy.orm import selectinload

from xinfer_lab.course.compose import compose
from xinfer_lab.course.handed_in import time_of
from xinfer_lab.course.job import Marked
from xinfer_lab.course.lab import Lab

__all__ = ["Store", "before"]


def before(marked: Path) -> Path:
    """Where a marked notebook waits that is to be replaced."""
    return marked.with_name(f"{marked.name}.before")


class Store:
    """Writes the marks of one lab. ``book`` is an open gradebook of nbgrader's, ``converter`` its autograde step."""

    def __init__(self, book: Any, lab: Lab, converter: Any) -> None:
        from nbgrader.preprocessors import AssignLatePenalties, LimitOutput

        self._book, self._lab, self._converter = book, lab, converter
        self._notebook = book.find_notebook(Path(lab.name).stem, lab.assignment)
        self._sources = {cell.name: cell for cell in self._notebook.source_cells}
        self._points = {cell.name: float(cell.max_score) for cell in self._notebook.grade_cells}
        # Held here: a session keeps no object alive.
        self._cells = {cell.id: cell.name for cell in self._notebook._base_cells}
        self._limit = LimitOutput(config=converter.config)
        self._late = AssignLatePenalties(config=converter.config)
        self._late.init_plugin()

    def write(self, markings: Mapping[str, Marked]) -> None:
        """Store ``markings`` by student: all of them, or none and an exception."""
        made: dict[str, NotebookNode] = {}
        with self._book.db().no_autoflush:
            graded = self._submissions(list(markings))
            for student, marked in markings.items():
                made[student] = self._finished(compose(self._lab, marked))
                graded_texts = self._answers(student)
                self._clear(student)
                self._grade(student, graded[student], made[student], graded_texts)
        self._book.db().commit()
        for student, node in made.items():
            self._put(student, node)

    def _submissions(self, students: list[str]) -> dict[str, Any]:
        """nbgrader's entry of this lab's notebook for each of ``students``, made where there is none.

        nbgrader's own methods ask the database a dozen times for each.
        """
        from nbgrader.api import Comment, Grade, Student, SubmittedAssignment, SubmittedNotebook

        db = self._book.db()
        known = {one.id: one for one in db.query(Student).filter(Student.id.in_(students))}
        lab = self._notebook.assignment
        there = db.query(SubmittedNotebook).join(
            SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id
        )
        mine = there.filter(
            SubmittedNotebook.notebook_id == self._notebook.id, SubmittedAssignment.student_id.in_(students)
        ).options(*(selectinload(getattr(SubmittedNotebook, name)) for name in ("assignment", "grades", "comments")))
        found = {one.assignment.student_id: one for one in mine}
        for student in students:
            if student in found:
                continue
            person = known.get(student) or Student(id=student)
            submission = SubmittedAssignment(assignment=lab, student=person)
            for notebook in lab.notebooks:
                made = SubmittedNotebook(notebook=notebook, assignment=submission)
                for cell in notebook.grade_cells:
                    Grade(cell_id=cell.id, notebook=made)
                for cell in (*notebook.solution_cells, *notebook.task_cells):
                    Comment(cell_id=cell.id, notebook=made)
                for cell in notebook.task_cells:
                    Grade(cell_id=cell.id, notebook=made)
                if notebook is self._notebook:
                    found[student] = made
            db.add(submission)
        return found

    def _finished(self, nb: NotebookNode) -> NotebookNode:
        """``nb`` with the instructor's grade cells, whose hidden tests a released notebook lacks."""
        for cell in nb.cells:
            mark = cell.metadata.get("nbgrader", {})
            source = self._sources.get(mark.get("grade_id"))
            if source is None:
                continue
            mark["checksum"] = source.checksum
            if mark.get("grade"):
                mark["points"] = self._points[mark["grade_id"]]
            if source.locked:
                cell.source = source.source
        nb, _ = self._limit.preprocess(nb, {})
        return nb

    def _folder(self, student: str) -> Path:
        return Path(self._converter._format_dest(self._lab.assignment, student))

    def _submitted(self, student: str) -> Path:
        courses = self._converter.coursedir
        return Path(courses.format_path(courses.submitted_directory, student, self._lab.assignment))

    def _answers(self, student: str) -> dict[str, str]:
        """The texts that a person may have given points for, as they stand in the notebook that is replaced."""
        path = self._folder(student) / self._lab.name
        try:
            cells = json.loads((path if path.exists() else before(path)).read_text(encoding="utf-8"))["cells"]
            return {
                cell["metadata"]["nbgrader"]["grade_id"]: "".join(cell["source"])
                for cell in cells
                if cell["metadata"].get("nbgrader", {}).get("grade")
            }
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _clear(self, student: str) -> None:
        from nbgrader.utils import rmtree

        if self._folder(student).exists():
            rmtree(str(self._folder(student)))

    def _grade(self, student: str, graded: Any, nb: NotebookNode, texts: Mapping[str, str]) -> None:
        """The scores of ``student`` by what stands in ``nb``; not committed."""
        submission = graded.assignment
        submission.timestamp, _ = time_of(self._submitted(student))
        cells = {cell.metadata.nbgrader["grade_id"]: cell for cell in nb.cells if _is_marked(cell)}
        for grade in graded.grades:
            name = self._cells[grade.cell_id]
            self._score(grade, cells[name], texts.get(name))
        for comment in graded.comments:
            cell = cells.get(self._cells[comment.cell_id])
            comment.auto_comment = "No response." if cell is not None and _unchanged(cell) else None
        graded.late_submission_penalty = None
        if submission.total_seconds_late > 0:
            self._book.db.flush()
            self._book.db.refresh(graded)
            penalty = self._late.plugin_inst.late_submission_penalty(
                student, graded.score, submission.total_seconds_late
            )
            if penalty is not None:
                graded.late_submission_penalty = self._late._check_late_penalty(graded, penalty)

    def _score(self, grade: Any, cell: NotebookNode, text: str | None) -> None:
        """The points of one cell. What a person graded is asked for again only where it is not what they read."""
        from nbgrader.utils import determine_grade

        score, _ = determine_grade(cell)
        same = text == cell.source and grade.auto_score == score
        if grade.manual_score is None:
            grade.needs_manual_grade = score is None
        elif not same:
            grade.needs_manual_grade = True
        grade.auto_score = score

    def _put(self, student: str, nb: NotebookNode) -> None:
        """Write the marked notebook, and beside it what was handed in and given with it."""
        folder = self._folder(student)
        folder.mkdir(parents=True, exist_ok=True)
        courses = self._converter.coursedir
        given = Path(courses.format_path(courses.source_directory, ".", self._lab.assignment))
        for source in (self._submitted(student), given):
            for path in _beside(source, courses.ignore):
                into = folder / path.relative_to(source)
                into.parent.mkdir(parents=True, exist_ok=True)
                into.unlink(missing_ok=True)
                shutil.copy(path, into)
        (folder / self._lab.name).write_text(_text(nb), encoding="utf-8", newline="\n")
        self._converter.set_permissions(self._lab.assignment, student)


def _text(nb: NotebookNode) -> str:
    """The file of ``nb``, a line for each cell. Indented throughout, writing it takes ten times as long."""

    def plain(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)

    rest = {name: value for name, value in nb.items() if name != "cells"}
    parts = [f' "{name}": {plain(value)}' for name, value in sorted(rest.items())]
    return '{\n "cells": [\n' + ",\n".join(map(plain, nb.cells)) + "\n ],\n" + ",\n".join(parts) + "\n}\n"


def _is_marked(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("grade_id"))


def _unchanged(cell: NotebookNode) -> bool:
    from nbgrader.utils import compute_checksum

    return bool(cell.metadata.nbgrader.get("checksum") == compute_checksum(cell))


def _beside(folder: Path, ignore: Iterable[str]) -> list[Path]:
    """The files in ``folder`` that are no notebooks. A link out of it is not followed: it may name anything."""
    from nbgrader.utils import find_all_files

    home = folder.resolve()
    paths = [Path(name) for name in find_all_files(str(folder), [*ignore, "*.ipynb*"])]
    return [path for path in paths if path.resolve().is_relative_to(home) and path.is_file()]
