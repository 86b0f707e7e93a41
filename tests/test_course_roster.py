"""Rosters, due dates, and the tables that Canvas and Moodle take."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import pytest

from tests.classes import LAB, SmallClass, remembered
from tests.command_line import invoke, refused
from tests.marking import hand_in, notebook
from xinfer_lab.course.roster import Person, RosterError, read_roster

CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Homework (12)\n    Points Possible,,,,,10\n"
    '"Lovelace, Ada",4711,77,ada,One,9\n"Hopper, Grace",4712,78,grace,One,8\n"Student, Test",4713,,,One,\n'
)
MOODLE = "First name;Surname;Username;Email address\nAda;Lovelace;ada;ada@example.org\n"


@pytest.mark.parametrize(
    ("raw", "people"),
    [
        (CANVAS.encode(), [Person("ada", "Ada", "Lovelace", lms_user_id="4711"),
          Person("grace", "Grace", "Hopper", lms_user_id="4712")]),
        (MOODLE.encode("utf-8-sig"), [Person("ada", "Ada", "Lovelace", "ada@example.org")]),
        (MOODLE.encode("utf-16"), [Person("ada", "Ada", "Lovelace", "ada@example.org")]),
        (b"student\nada\n\n", [Person("ada")]),
        ("username\tlast_name\nb\u00e9a\tM\u00fcller\n".encode("cp1252"), [Person("b\u00e9a", "", "M\u00fcller")]),
    ],
)  # fmt: skip
def test_a_roster_is_read_whoever_made_it(raw: bytes, people: list[Person]) -> None:
    assert read_roster(raw) == people


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "is empty"),
        (b"name,email\nAda,a@example.org\n", "wanted is one called student"),
        (b"student\nada lovelace\n", "line 2 of the roster has the name 'ada lovelace'"),
        (b"student\n../x\n", "one word without"),
        (b"student,email\nada,x\nada,y\n", "line 3 of the roster has ada a second time"),
    ],
)
def test_a_roster_that_cannot_be_taken_is_refused_with_its_line(raw: bytes, why: str) -> None:
    with pytest.raises(RosterError, match=why):
        read_roster(raw)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> SmallClass:
    """A class of two on a roster and a third, who came late."""
    made = SmallClass(tmp_path_factory.mktemp("class"))
    with (made.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write('\nc.LateSubmissionPlugin.penalty_method = "zero"\n')
    for student, at in (("ada", "2026-12-01 10:00:00 UTC"), ("late", "2026-12-02 10:00:00 UTC")):
        made.submit(student, notebook(hand_in()))
        made.put(student, "timestamp.txt", at.encode())
    (made.root / "roster.csv").write_text(CANVAS, encoding="utf-8")
    made.said = invoke("roster", made.root / "roster.csv", "--root", made.root).stdout
    assert invoke("due", LAB, "2026-12-02T10:30+01:00", "--root", made.root).exit_code == 0
    with remembered() as worker:
        made.mark(worker)
    with made.book().gradebook() as book:
        grade = book.find_grade("written", "lab", LAB, "ada")
        grade.manual_score, grade.needs_manual_grade = 2.5, False
        book.db.commit()
    return made


def table(course: SmallClass, *arguments: str) -> tuple[list[list[str]], str]:
    said = invoke("export", LAB, *arguments, "--root", course.root)
    assert said.exit_code == 0
    return list(csv.reader(said.stdout.splitlines())), said.stderr


def test_who_is_on_it_is_in_the_gradebook_and_who_is_not_is_named(course: SmallClass) -> None:
    assert course.said.splitlines() == [
        "2 students: 2 new, 0 changed, 0 as before.",
        "Handed in, and not on this roster: late.",
    ]
    again = invoke("roster", course.root / "roster.csv", "--root", course.root).stdout
    assert again.startswith("2 students: 0 new, 0 changed, 2 as before.")


def test_a_due_date_is_told_and_what_comes_after_it_costs_what_the_course_says(course: SmallClass) -> None:
    said = invoke("due", LAB, "--root", course.root).stdout
    assert said.startswith(f"{LAB} is due 2026-12-02 09:30+00:00")
    rows = {row[0]: row for row in table(course)[0]}
    late, penalty, score = (rows["student"].index(name) for name in ("seconds_late", "late_penalty", "score"))
    assert (rows["ada"][late], rows["ada"][penalty], rows["ada"][score]) == ("0", "0", "8.5")
    assert (rows["late"][late], rows["late"][penalty], rows["late"][score]) == ("1800", "6", "0")


@pytest.mark.parametrize(
    ("when", "why"), [("tomorrow", "is no date"), ("2026-12-02T10:30", "has no time zone"), ("2026-13-01", "no date")]
)
def test_a_due_date_that_is_none_is_refused(when: str, why: str, course: SmallClass) -> None:
    assert why in refused(invoke("due", LAB, when, "--root", course.root))


def test_canvas_gets_its_own_columns_and_no_score_that_is_not_complete(course: SmallClass) -> None:
    rows, said = table(course, "--format", "canvas")
    assert rows == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", LAB],
        ["    Points Possible", "", "", "", "", "9"],
        ["Lovelace, Ada", "4711", "", "ada", "", "8.5"],
        ["Hopper, Grace", "4712", "", "grace", "", ""],
        ["late", "", "", "late", "", ""],
    ]
    assert f"{LAB}: 1 left empty, not handed in" in said and f"{LAB}: 1 left empty, to be graded by hand" in said


def test_moodle_gets_its_own_columns(course: SmallClass) -> None:
    rows, _ = table(course, "--format", "moodle", "--partial")
    assert rows[0] == ["Username", "Email address", "First name", "Last name", LAB]
    assert [row[0] for row in rows[1:]] == ["ada", "grace", "late"]
    assert [row[-1] for row in rows[1:]] == ["8.5", "", "0"]


def test_feedback_comes_as_one_archive(course: SmallClass, tmp_path: Path) -> None:
    said = invoke("feedback", LAB, "--student", "ada", "--zip", tmp_path / "feedback.zip", "--root", course.root)
    assert said.exit_code == 0, said.stdout
    with zipfile.ZipFile(tmp_path / "feedback.zip") as archive:
        assert archive.namelist() == [f"ada/{LAB}-lab.html"]
