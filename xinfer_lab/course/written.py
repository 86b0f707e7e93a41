"""Written answers by question: what is asked, what a good answer has, what was written, what a person gives."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from xinfer_lab.course.gradebook import CourseBook
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.mark_stamp import read_marks
from xinfer_lab.course.notebook import read_notebook

__all__ = ["Answer", "Item", "Question", "answers_to", "give", "questions_of"]

_SOLUTION = re.compile(r"^\s*#+ *(?:BEGIN|END) SOLUTION[^\n]*\n?", re.MULTILINE)
_SCHEME = re.compile(r"\*Marking: (.+?)\*\s*$", re.DOTALL)
_ITEM = re.compile(r"(?:^|[,;:]\s+(?:and\s+)?)(\d+(?:\.\d+)?)(?: points?)? for ")


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a rubric: the points that it gives, and for what."""

    points: float
    what: str


@dataclass(frozen=True, slots=True)
class Question:
    """A graded answer of a lab: the text above it, the instructor's answer, and the rubric at that answer's end.

    The rubric is the line ``*Marking: 1 point for ..., 1 for ...*``; it is empty where there is none.
    """

    name: str
    text: str
    points: float
    model: str
    rubric: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """One text, and all ``students`` who wrote it. ``waiting``: of some of them it is still to be graded.

    ``points`` and ``comment`` are those that were given, where all of them got the same.
    """

    students: tuple[str, ...]
    text: str
    waiting: bool
    points: float | None
    comment: str


def questions_of(lab: Lab, source: Path) -> list[Question]:
    """The questions of ``lab`` that a person grades; ``source`` is the instructor's notebook."""
    found, above = [], ""
    for cell in read_notebook(source).cells:
        mark = cell.mark
        if mark.get("grade") and mark.get("solution"):
            text = _SOLUTION.sub("", cell.source).strip()
            scheme = _SCHEME.search(text)
            model = text[: scheme.start()].strip() if scheme else text
            rubric = tuple(_items(scheme[1])) if scheme else ()
            found.append(Question(str(cell.grade_id), above, float(mark["points"]), model, rubric))
        elif cell.kind == "markdown":
            above = cell.source
    return found


def _items(scheme: str) -> Iterator[Item]:
    starts = list(_ITEM.finditer(" ".join(scheme.split())))
    text = " ".join(scheme.split())
    for number, start in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        yield Item(float(start[1]), text[start.end() : end].rstrip(" .,;"))


def answers_to(question: Question, book: CourseBook, lab: Lab) -> list[Answer]:
    """What was written, those first that wait to be graded. Equal texts are one answer. Raises `GradebookError`."""
    graded = _given(question, book, lab)
    texts: dict[str, list[str]] = {}
    for student in book.students(lab.assignment):
        path = book.autograded(lab.assignment, student) / lab.name
        marks = read_marks(path)
        if student in graded and marks is not None and not marks.trouble:
            text = _text(path, question.name)
            if text is not None:
                texts.setdefault(text.strip(), []).append(student)
    found = []
    for text, students in texts.items():
        given = {graded[student][1:] for student in students}
        points, comment = given.pop() if len(given) == 1 else (None, "")
        found.append(Answer(tuple(students), text, any(graded[one][0] for one in students), points, comment))
    return sorted(found, key=lambda one: (not one.waiting, one.students))


def _given(question: Question, book: CourseBook, lab: Lab) -> dict[str, tuple[bool, float | None, str]]:
    """By student: whether the answer waits, the points that were given, and the comment."""
    from nbgrader.api import Assignment, BaseCell, Comment, Grade, Notebook, SubmittedAssignment, SubmittedNotebook

    with book.gradebook() as opened:
        db = opened.db

        def rows(kind: type, *columns: object) -> list[tuple]:  # type: ignore[type-arg]
            query = (
                db.query(SubmittedAssignment.student_id, *columns)
                .select_from(kind)
                .join(BaseCell, BaseCell.id == kind.cell_id)  # type: ignore[attr-defined]
                .join(SubmittedNotebook, SubmittedNotebook.id == kind.notebook_id)  # type: ignore[attr-defined]
                .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
                .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
                .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
            )
            names = (BaseCell.name == question.name, Assignment.name == lab.assignment)
            return [tuple(row) for row in query.filter(*names, Notebook.name == Path(lab.name).stem)]

        comments = dict(rows(Comment, Comment.manual_comment))
        grades = rows(Grade, Grade.needs_manual_grade, Grade.manual_score, Grade.auto_score)
        return {
            student: (bool(waits), auto if points is None else points, comments.get(student) or "")
            for student, waits, points, auto in grades
        }


def _text(path: Path, name: str) -> str | None:
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return next("".join(cell["source"]) for cell in cells if _name(cell) == name)
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return None


def _name(cell: dict) -> object:  # type: ignore[type-arg]
    return cell["metadata"].get("nbgrader", {}).get("grade_id")


def give(
    question: Question, book: CourseBook, lab: Lab, students: Sequence[str], points: float | None, comment: str
) -> None:
    """Give ``students`` these points for their answer, and the comment; None takes points back, and the answer waits.

    Raises ValueError for points that the question does not have, or `GradebookError`.
    """
    if points is not None and not 0 <= points <= question.points:
        raise ValueError(f"{points:g} points were given; {question.name} has 0 to {question.points:g}")
    notebook = Path(lab.name).stem
    with book.gradebook() as opened:
        for student in students:
            grade = opened.find_grade(question.name, notebook, lab.assignment, student)
            grade.manual_score, grade.needs_manual_grade = points, points is None
            opened.find_comment(question.name, notebook, lab.assignment, student).manual_comment = comment or None
        opened.db.commit()
