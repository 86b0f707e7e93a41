"""Plain `nbgrader autograde` on a class of odd submissions: each is marked for what it holds, none stops another,
scores are replaced.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Self
from unittest.mock import patch

import pytest

from tests.html_rules import PageReader, active, loaded
from tests.marking import Course, code, hand_in, notebook
from tests.project import ROOT, STUCK
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.feedback import feedback
from xinfer_lab.course.nbgrader_process import NbgraderError, nbgrader_environment, run_nbgrader

pytestmark = pytest.mark.process

LAB = "lab9-small"
FULL = {"check-double": 2, "check-triple": 3, "check-choice": 1, "written": None}
NOTHING = dict.fromkeys(FULL, 0) | {"written": 0}


class Class(Course):
    """The small course, released and marked by nbgrader, with a package of its own on the path."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        (self.root / "gradebook.db").unlink()
        shutil.rmtree(self.root / "submitted")
        shutil.rmtree(self.root / "labs")
        shutil.copy(ROOT / "nbgrader_config.py", self.root)
        self.nbgrader("generate_assignment", LAB)

    def copy(self, into: Path) -> Self:
        """The same course in the folder ``into``, with the same package."""
        made = object.__new__(type(self))
        made.root, made.package = into, self.package
        shutil.copytree(self.root, into, symlinks=True)
        return made

    def own(self) -> dict[str, str]:
        own = {"JUPYTER_CONFIG_DIR": str(self.root / "jupyter"), "IPYTHONDIR": str(self.root / "ipython")}
        paths = [str(self.package.parent), os.environ.get("PYTHONPATH", "")]
        own["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        return own

    def environment(self) -> dict[str, str]:
        return {**nbgrader_environment(self.root), **self.own()}

    def nbgrader(self, *arguments: str) -> str:
        return run_nbgrader(self.root, *arguments, environment=self.own())

    def submit(self, student: str, content: object, name: str = "lab.ipynb") -> None:
        folder = self.root / "submitted" / student / LAB
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")

    def scores(self, student: str) -> dict[str, float | None]:
        with warnings.catch_warnings(), patch.dict(os.environ, nbgrader_environment(self.root)):
            warnings.simplefilter("ignore")  # SQLAlchemy's and nbgrader's own
            from nbgrader.api import Gradebook

            with Gradebook(f"sqlite:///{self.root / 'gradebook.db'}") as gradebook:
                graded = gradebook.find_submission_notebook("lab", LAB, student)
                return {grade.name: grade.auto_score for grade in graded.grades}

    def marked(self, student: str) -> list[dict]:
        path = self.root / "autograded" / student / LAB / "lab.ipynb"
        return json.loads(path.read_text(encoding="utf-8"))["cells"]

    def feedback(self, student: str) -> str:
        return (self.root / "feedback" / student / LAB / "lab.html").read_text(encoding="utf-8")


def said(cells: list[dict], name: str) -> str:
    cell = next(cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade_id") == name)
    return "\n".join("".join(output.get("traceback") or output.get("text") or ()) for output in cell["outputs"])


def duplicated() -> list[dict]:
    listed = hand_in()
    listed += [copy.deepcopy(cell) for cell in listed if cell["id"] in ("check-double", "double", "setup")]
    return listed


def edited() -> list[dict]:
    return hand_in({"check-double": "print('full marks')", "setup": "check = print"})


def stripped() -> list[dict]:
    return [{**cell, "metadata": {}} for cell in hand_in()]


def claims_points() -> list[dict]:
    listed = hand_in({"double": "def double(n):\n    return 0", "triple": "def triple(n):\n    return 3 * n"})
    for cell in listed:
        if cell["id"] == "check-double":
            cell["metadata"]["nbgrader"] |= {"points": 100, "grade": False}
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "all passed, says its author"}]
    return listed


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Class:
    course = Class(tmp_path_factory.mktemp("class"))
    course.submit("right", notebook(hand_in()))
    course.submit("unfilled", (course.root / "labs" / LAB / "lab.ipynb").read_text(encoding="utf-8"))
    course.submit("duplicated", notebook(duplicated()))
    course.submit("edited", notebook(edited()))
    course.submit("stripped", notebook(stripped()))
    course.submit("claims", notebook(claims_points()))
    course.submit("cut-off", json.dumps(notebook(hand_in()))[:500])
    course.submit("empty", "")
    course.submit("no-cells", notebook([]))
    course.submit("renamed", notebook(hand_in()), "lab (1).ipynb")
    course.submit("dies", notebook(hand_in({"triple": "import os\ndef triple(n):\n    os._exit(0)"})))
    course.submit(
        "old-marks",
        notebook(
            [
                {**cell, "metadata": {"nbgrader": {**cell["metadata"].get("nbgrader", {}), "schema_version": 99}}}
                for cell in hand_in()
            ]
        ),
    )
    for student in ("linked", "neighbour"):
        course.submit(student, notebook(hand_in()))
    folder = course.root / "submitted" / "linked" / LAB
    (folder / "lab.ipynb").unlink()
    (folder / "lab.ipynb").symlink_to(course.root / "solutions" / LAB / "lab.ipynb")
    folder = course.root / "submitted" / "neighbour" / LAB
    (folder / "solution").symlink_to(course.root / "solutions" / LAB / "lab.ipynb")
    (folder / "page.html").write_text("<script>alert(1)</script>", encoding="utf-8")
    (folder / "timestamp.txt").write_text("yesterday", encoding="utf-8")
    course.submit(
        "noisy",
        notebook(
            hand_in(
                {
                    "double": (
                        "import sys, warnings\nwarnings.warn('hm')\n"
                        "print('<b>hm</b>', file=sys.stderr)\ndef double(n):\n    return 2 * n"
                    )
                }
            )
        ),
    )
    course.log = course.nbgrader("autograde", LAB)
    course.nbgrader("generate_feedback", LAB)
    return course


@pytest.mark.parametrize(
    "student", ["right", "duplicated", "edited", "stripped", "renamed", "old-marks", "noisy", "neighbour"]
)
def test_right_answers_earn_all_points_in_whatever_notebook_they_come(student: str, marked: Class) -> None:
    assert marked.scores(student) == FULL


@pytest.mark.parametrize("student", ["unfilled", "cut-off", "empty", "no-cells", "linked"])
def test_what_holds_no_answer_earns_nothing_and_no_zero_is_bare(student: str, marked: Class) -> None:
    scores = marked.scores(student)
    assert {name: score or 0 for name, score in scores.items()} == NOTHING
    for name in ("check-double", "check-triple", "check-choice"):
        assert said(marked.marked(student), name).startswith(f"lab9.{name.removeprefix('check-')}: not yet.")


@pytest.mark.parametrize(
    ("student", "note"),
    [
        ("cut-off", "not valid JSON"),
        ("empty", "is empty"),
        ("linked", "is a link; hand in the file itself"),
        ("duplicated", "is there 2 times"),
        ("edited", "was changed"),
    ],
)
def test_notes_stand_at_the_top_of_what_comes_back(student: str, note: str, marked: Class) -> None:
    assert note in "".join(marked.marked(student)[0]["source"])
    assert note in marked.feedback(student)


def test_claimed_points_and_outputs_of_a_students_count_nothing(marked: Class) -> None:
    assert marked.scores("claims") == {**FULL, "check-double": 0}


def test_a_killed_process_costs_its_own_points(marked: Class) -> None:
    assert marked.scores("dies") == {**FULL, "check-triple": 0}
    assert "ended the process" in said(marked.marked("dies"), "check-triple")


def test_a_notebook_that_comes_back_has_one_cell_for_each_of_the_labs(marked: Class) -> None:
    for student in ("right", "edited", "stripped"):
        graded = [
            cell["metadata"]["nbgrader"]["grade_id"]
            for cell in marked.marked(student)
            if "nbgrader" in cell["metadata"]
        ]
        assert len(graded) == len(set(graded)) == 8


def test_feedback_shows_reasons_and_no_hidden_test(marked: Class) -> None:
    page = marked.feedback("unfilled")
    assert "not filled in" in page
    assert "HIDDEN" not in page and "seed=None" not in page and "seed</span>" not in page


STUDENTS = [
    "right",
    "unfilled",
    "duplicated",
    "edited",
    "stripped",
    "claims",
    "cut-off",
    "empty",
    "no-cells",
    "renamed",
]


@pytest.mark.parametrize("student", [*STUDENTS, "dies", "old-marks", "noisy"])
def test_feedback_loads_nothing_runs_nothing_and_leaves_no_zero_bare(student: str, marked: Class) -> None:
    page = PageReader(marked.feedback(student))
    assert loaded(page) == [] and active(page) == []
    for name, score in marked.scores(student).items():
        if score == 0 and name != "written":
            lost = page.text.split(f"lab9.{name.removeprefix('check-')}:")[1].split("Your work")[0]
            assert any(word in lost for word in ("expected", "got", "next")), lost


def test_feedback_shows_what_the_notebook_printed_as_text(marked: Class) -> None:
    assert "<b>hm</b>" in PageReader(marked.feedback("noisy")).text


@pytest.fixture
def copied(marked: Class, tmp_path: Path) -> Class:
    """The marked class for one test alone, which may change it."""
    return marked.copy(tmp_path / "course")


def test_formgraders_button_and_the_command_write_the_page_with_what_a_person_gave(copied: Class) -> None:
    with warnings.catch_warnings(), patch.dict(os.environ, nbgrader_environment(copied.root)):
        warnings.simplefilter("ignore")  # SQLAlchemy's and nbgrader's own
        from nbgrader.api import Gradebook

        with Gradebook(f"sqlite:///{copied.root / 'gradebook.db'}") as gradebook:
            gradebook.find_grade("written", "lab", LAB, "claims").manual_score = 2
            gradebook.find_grade("check-double", "lab", LAB, "claims").manual_score = 1
            gradebook.find_comment("written", "lab", LAB, "claims").manual_comment = "Say *why*."
            gradebook.db.commit()
    before = copied.feedback("claims")
    # As Formgrader does it: its handlers load the configuration and call this.
    button = (
        "from nbgrader.apps import NbGrader; from nbgrader.apps.api import NbGraderAPI; app = NbGrader(); "
        f"app.load_config_file(); done = NbGraderAPI(config=app.config).generate_feedback({LAB!r}, 'claims', True); "
        "assert done['success'], done"
    )
    subprocess.run([sys.executable, "-c", button], cwd=copied.root, env=copied.environment(), check=True, timeout=STUCK)
    by_button = copied.feedback("claims")
    words = PageReader(by_button).text
    assert "not read yet" in PageReader(before).text and "read by your instructor, 2 of 3 points" in words
    assert "Your instructor set these points to 1; marking gave 0." in words
    assert "<em>why</em>" in by_button
    assert feedback(LAB, students=["claims"], root=copied.root) == 0
    assert copied.feedback("claims") == by_button


def test_the_command_says_who_has_no_page_and_why(marked: Class, capsys: pytest.CaptureFixture[str]) -> None:
    assert feedback(LAB, students=["right", "absent"], root=marked.root) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "feedback/right/lab9-small/lab.html" in said.replace("\\", "/")
    assert "no page: no marked notebook of lab9-small is there; mark it first" in said
    assert "Feedback for 1 of 2." in said


def test_a_notebook_that_gives_no_page_costs_no_other_student_his(
    copied: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copied.root / "autograded" / "renamed" / LAB / "lab.ipynb"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["cells"] = [cell for cell in content["cells"] if cell["id"] != "setup"]
    path.chmod(0o644)
    path.write_text(json.dumps(content), encoding="utf-8")
    assert feedback(LAB, students=[], root=copied.root) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"Feedback for {len(STUDENTS) + 4} of {len(STUDENTS) + 5}." in said and "mark it anew" in said


def test_a_page_of_an_older_release_is_taken_away_and_not_written_anew(
    copied: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    root = copied.root
    for folder in ("labs", "solutions"):
        path = root / folder / LAB / "lab.ipynb"
        lab = json.loads(path.read_text(encoding="utf-8"))
        for cell in lab["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == "check-double":
                cell["metadata"]["nbgrader"]["points"] = 4
        path.write_text(json.dumps(lab), encoding="utf-8")
    page = root / "feedback" / "right" / LAB / "lab.html"
    assert page.is_file()
    assert feedback(LAB, students=["right"], root=root) == 1
    assert "earlier release" in " ".join(capsys.readouterr().out.split()) and not page.exists()
    with pytest.raises(NbgraderError) as raised:
        run_nbgrader(root, "generate_feedback", LAB, "--student", "right", "--force", environment=copied.own())
    assert "was marked with another release" in raised.value.log and not page.exists()


@pytest.mark.parametrize(
    ("lab", "words"),
    [
        ("lab7-none", "there is no lab 'lab7-none'; there are lab9-small, lab9-stream"),
        ("lab9-stream", "nothing of lab9-stream is marked yet"),
    ],
)
def test_the_command_refuses_what_is_not_there(lab: str, words: str, marked: Class) -> None:
    with pytest.raises(CommandError, match=re.escape(words)):
        feedback(lab, students=[], root=marked.root)


def test_nothing_is_left_of_the_submissions_own_outputs(marked: Class) -> None:
    outputs = [cell["outputs"] for cell in marked.marked("claims") if cell["cell_type"] == "code"]
    assert "says its author" not in json.dumps(outputs)


def test_nothing_that_lies_beside_a_notebook_gets_into_the_marked_folder(marked: Class) -> None:
    assert [path.name for path in (marked.root / "autograded" / "neighbour" / LAB).iterdir()] == ["lab.ipynb"]
    assert "SOLUTION" not in json.dumps(marked.marked("linked")[1:])


def test_the_log_says_how_far_students_code_was_kept_apart(marked: Class) -> None:
    assert ("Isolated by bubblewrap" in marked.log) or ("NOT isolated" in marked.log)


@pytest.mark.slow
def test_marking_again_replaces_the_scores(copied: Class) -> None:
    wrong = {"double": "def double(n):\n    return 0", "triple": "def triple(n):\n    return 3 * n"}
    copied.submit("right", notebook(hand_in(wrong)))
    copied.submit("cut-off", notebook([*hand_in(), code("mine", "1 / 0")]))
    for student in ("right", "cut-off"):
        copied.nbgrader("autograde", LAB, "--student", student, "--force")
    assert copied.scores("right") == {**FULL, "check-double": 0}
    assert copied.scores("cut-off") == FULL
    copied.submit("cut-off", "{")
    copied.nbgrader("autograde", LAB, "--student", "cut-off", "--force")
    assert {name: score or 0 for name, score in copied.scores("cut-off").items()} == NOTHING
