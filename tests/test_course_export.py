"""What a learning-management system gets: a row for each student and lab, whose status says what the score is worth."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.classes import LAB, SmallClass, remembered
from tests.command_line import invoke
from tests.marking import hand_in, notebook
from xinfer_lab.course import autograde as running
from xinfer_lab.course.export import COLUMNS, rows_of
from xinfer_lab.course.job import Job, Marked

WRONG = {"double": "def double(n):\n    return 0", "triple": "def triple(n):\n    return 3 * n"}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> SmallClass:
    """A class after its marking, in which two then hand in again and one does so for the first time."""
    made = SmallClass(tmp_path_factory.mktemp("class"))
    for student in ("right", "late", "again", "graded"):
        made.submit(student, notebook(hand_in()))
    made.submit("wrong", notebook(hand_in(WRONG)))
    made.put("right", "timestamp.txt", b"2026-11-29 20:00:00 UTC")
    made.submit("=1+1", notebook(hand_in()))
    with remembered() as worker:
        made.mark(worker)
        real = running.mark_job

        def breaks(job: Job) -> Marked:
            if job.student == "stuck":
                raise RuntimeError("out of order")
            return real(job)

        made.submit("stuck", notebook(hand_in()))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(running, "mark_job", breaks)
            made.mark(worker)
    with made.book().gradebook() as book:
        book.update_or_create_student("absent", last_name="Nobody", first_name="A.", email="a@example.org")
        book.find_grade("written", "lab", LAB, "graded").manual_score = 1.5
        book.find_grade("written", "lab", LAB, "graded").needs_manual_grade = False
        book.db.commit()
    made.submit("again", notebook(hand_in(WRONG)))
    made.submit("new", notebook(hand_in()))
    return made


@pytest.fixture(scope="module")
def rows(course: SmallClass) -> dict[str, dict[str, str]]:
    said = invoke("export", LAB, "--root", course.root)
    assert said.exit_code == 0
    found = list(csv.DictReader(said.stdout.splitlines()))
    assert tuple(found[0]) == COLUMNS
    return {row["student"]: row for row in found}


@pytest.mark.parametrize(
    ("student", "score", "status", "lost"),
    [
        ("right", "6", "to be graded by hand", ""),
        ("graded", "7.5", "marked", ""),
        ("wrong", "4", "to be graded by hand", "check-double: failed"),
        ("again", "", "handed in again since it was marked", ""),
        ("new", "", "not marked yet", ""),
        ("absent", "", "not handed in", ""),
        ("stuck", "", "not marked: RuntimeError: out of order", ""),
    ],
)
def test_a_score_is_there_only_where_it_counts(
    student: str, score: str, status: str, lost: str, rows: dict[str, dict[str, str]]
) -> None:
    row = rows[student]
    assert (row["score"], row["status"], row["lost"]) == (score, status, lost)
    assert row["lab"] == LAB and row["max_score"] == "9"


def test_what_the_gradebook_knows_of_a_student_is_there(rows: dict[str, dict[str, str]]) -> None:
    absent = rows["absent"]
    assert (absent["last_name"], absent["first_name"], absent["email"]) == ("Nobody", "A.", "a@example.org")
    assert rows["right"]["handed_in_at"] == "2026-11-29 20:00:00" and rows["wrong"]["handed_in_at"] == ""


def test_no_cell_is_a_formula(rows: dict[str, dict[str, str]]) -> None:
    assert "'=1+1" in rows and "=1+1" not in rows


def test_points_for_coming_late_are_taken_off(course: SmallClass) -> None:
    with course.book().gradebook() as book:
        book.find_submission_notebook("lab", LAB, "late").late_submission_penalty = 2.0
        book.db.commit()
    (row,) = [row for row in rows_of(course.book(), course.lab()) if row["student"] == "late"]
    assert (row["score"], row["late_penalty"]) == ("4", "2")


def test_a_new_release_of_the_lab_asks_for_new_marks(course: SmallClass, tmp_path: Path) -> None:
    copy = course.copy(tmp_path / "course")
    path = copy.root / "labs" / LAB / "lab.ipynb"
    lab = json.loads(path.read_text(encoding="utf-8"))
    lab["cells"][0]["source"] = "# A smaller lab"
    path.write_text(json.dumps(lab), encoding="utf-8")
    statuses = {row["student"]: row["status"] for row in rows_of(copy.book(), copy.lab())}
    assert statuses["right"] == "marked with an earlier release; mark it again"


def test_the_file_is_written_whole(course: SmallClass, tmp_path: Path) -> None:
    path = tmp_path / "marks.csv"
    assert invoke("export", "--root", course.root, "--out", path).exit_code == 0
    listed = path.read_text(encoding="utf-8").splitlines()
    assert listed[0] == ",".join(COLUMNS) and len(listed) > 8
