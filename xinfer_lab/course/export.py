"""The gradebook as a table: a row for each student and lab, for a learning-management system."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import TextIO

from xinfer_lab.course.gradebook import CourseBook, Score
from xinfer_lab.course.handed_in import collect, signature
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.mark_stamp import Marks, read_marks
from xinfer_lab.course.verdict import Status

__all__ = ["COLUMNS", "Row", "plain", "rows_of", "write_csv"]

COLUMNS = (
    "student", "last_name", "first_name", "email", "lab", "score", "max_score", "late_penalty", "handed_in_at",
    "status", "lost", "notes", "marked_at", "grader", "seconds_late", "lms_user_id",
)  # fmt: skip
"""``score`` has the penalty taken off, and is empty where nothing is marked. ``lost`` names what earned nothing,
``notes`` are those on how the notebook was found, ``grader`` is the version of the package that marked.
"""

Row = dict[str, str]

MOST_NOTES = 3

LOST = (Status.FAILED, Status.TIMED_OUT, Status.DIED, Status.MISSING, Status.NOT_MARKED)


def rows_of(book: CourseBook, lab: Lab) -> Iterator[Row]:
    """A row for every student that the gradebook knows or who handed something in, in order."""
    scores, handed_in = book.scores(lab.assignment), set(book.students(lab.assignment))
    most = sum(graded.points for graded in lab.graded)
    for student in sorted({*scores, *handed_in}):
        score = scores.get(student) or Score(student, "", "", "", 0.0, most, 0.0, False, None)
        marks = read_marks(book.autograded(lab.assignment, student) / lab.name)
        status, counts = _status(book, lab, score, marks, student in handed_in)
        lost = "" if marks is None else "; ".join(
            f"{name}: {found.value}" for name, found in marks.statuses.items() if found in LOST
        )  # fmt: skip
        yield {
            "student": student,
            "last_name": score.last_name,
            "first_name": score.first_name,
            "email": score.email,
            "lab": lab.assignment,
            "score": f"{max(0.0, score.score - score.penalty):g}" if counts else "",
            "max_score": f"{score.most:g}",
            "late_penalty": f"{score.penalty:g}",
            "handed_in_at": "" if score.timestamp is None else score.timestamp.isoformat(sep=" "),
            "status": status,
            "lost": lost if counts else "",
            "notes": "" if marks is None else " ".join(marks.notes[:MOST_NOTES]),
            "marked_at": "" if marks is None else marks.at,
            "grader": "" if marks is None else marks.grader,
            "seconds_late": "" if score.late is None else f"{score.late:.0f}",
            "lms_user_id": score.lms,
        }


def _status(book: CourseBook, lab: Lab, score: Score, marks: Marks | None, handed_in: bool) -> tuple[str, bool]:
    """What there is to say of a student's lab, and whether its score counts."""
    if not handed_in:
        return "not handed in", False
    if marks is None:
        return "not marked yet", False
    if marks.trouble:
        return f"not marked: {marks.trouble}", False
    if not score.stored:
        return "its marks are not in the gradebook; mark it again", False
    if marks.release != lab.version:
        return "marked with an earlier release; mark it again", False
    folder = book.submitted(lab.assignment, score.student)
    if marks.signature != signature(folder) and marks.submission != collect(folder).version:
        return "handed in again since it was marked", False
    return ("to be graded by hand" if score.by_hand else "marked"), True


def write_csv(rows: Sequence[Row], out: TextIO) -> None:
    """Write ``rows`` under `COLUMNS`. No cell begins with a sign that a spreadsheet would take for a formula."""
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: plain(value) for name, value in row.items()} for row in rows)


def plain(value: str) -> str:
    """``value`` as a cell that no spreadsheet takes for a formula."""
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
