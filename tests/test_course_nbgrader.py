"""Plain `nbgrader autograde` on a class of odd submissions: each is marked for what it holds, none stops another,
scores are replaced.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import warnings
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.marking import Course, code, hand_in, notebook
from tests.project import ROOT
from xinfer_lab.course.nbgrader_process import nbgrader_environment, run_nbgrader

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

    def nbgrader(self, *arguments: str) -> str:
        own = {"JUPYTER_CONFIG_DIR": str(self.root / "jupyter"), "IPYTHONDIR": str(self.root / "ipython")}
        paths = [str(self.package.parent), os.environ.get("PYTHONPATH", "")]
        own["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        return run_nbgrader(self.root, *arguments, environment=own)

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
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "passed"}]
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


@pytest.mark.parametrize("student", ["right", "duplicated", "edited", "stripped", "renamed", "old-marks", "noisy"])
def test_right_answers_earn_all_points_in_whatever_notebook_they_come(student: str, marked: Class) -> None:
    assert marked.scores(student) == FULL


@pytest.mark.parametrize("student", ["unfilled", "cut-off", "empty", "no-cells"])
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


def test_nothing_is_left_of_the_submissions_own_outputs(marked: Class) -> None:
    outputs = [cell["outputs"] for cell in marked.marked("claims") if cell["cell_type"] == "code"]
    assert '"passed"' not in json.dumps(outputs)


def test_the_log_says_how_far_students_code_was_kept_apart(marked: Class) -> None:
    assert ("Isolated by bubblewrap" in marked.log) or ("NOT isolated" in marked.log)


def test_marking_again_replaces_the_scores(marked: Class) -> None:
    wrong = {"double": "def double(n):\n    return 0", "triple": "def triple(n):\n    return 3 * n"}
    marked.submit("right", notebook(hand_in(wrong)))
    marked.submit("cut-off", notebook([*hand_in(), code("mine", "1 / 0")]))
    for student in ("right", "cut-off"):
        marked.nbgrader("autograde", LAB, "--student", student, "--force")
    assert marked.scores("right") == {**FULL, "check-double": 0}
    assert marked.scores("cut-off") == FULL
    marked.submit("cut-off", "{")
    marked.nbgrader("autograde", LAB, "--student", "cut-off", "--force")
    assert {name: score or 0 for name, score in marked.scores("cut-off").items()} == NOTHING
