"""The whole loop through the real nbgrader: release, three submissions, autograde, feedback."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.notebooks import SOLUTIONS, Notebook, mark, read, released, submission
from tests.project import ROOT
from xinfer_lab.course.nbgrader_process import nbgrader_environment, run_nbgrader

LAB1 = SOLUTIONS[0]
LAB, NOTEBOOK = LAB1.parent.name, LAB1.name
PREDICTIONS = {"check-predict-embedding", "check-predict-cache", "check-predict-pool"}

Scores = dict[str, tuple[float, float]]
"""Score and points of each graded cell."""


def wrong_cache(cell: str, answer: str) -> str:
    """An answer that forgets the values in one piece, writes to stderr in another, and predicts wrongly."""
    if cell == "kv-cache-bytes":
        return answer.replace("2 * config", "config")
    if cell == "model-bytes":
        return answer.replace("    table =", '    import sys\n    print("a note", file=sys.stderr)\n    table =', 1)
    if cell == "predict-cache":
        return answer.replace('"D"', '"A"')
    return answer


class Course:
    """A course in a folder of its own, and what nbgrader made of three submissions."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(ROOT / "solutions", root / "solutions")
        shutil.copy(ROOT / "nbgrader_config.py", root)
        self.nbgrader("generate_assignment", LAB)
        self.submit("filled", submission(LAB1))
        self.submit("unfilled", read(root / "labs" / LAB / NOTEBOOK))
        self.submit("wrong", submission(LAB1, wrong_cache))
        self.nbgrader("autograde", LAB)
        self.nbgrader("generate_feedback", LAB)

    def nbgrader(self, *arguments: str) -> None:
        own = {"JUPYTER_CONFIG_DIR": str(self.root / "jupyter"), "IPYTHONDIR": str(self.root / "ipython")}
        run_nbgrader(self.root, *arguments, environment=own)

    def submit(self, student: str, notebook: Notebook) -> None:
        folder = self.root / "submitted" / student / LAB
        folder.mkdir(parents=True)
        (folder / NOTEBOOK).write_text(json.dumps(notebook), encoding="utf-8")

    def scores(self, student: str) -> Scores:
        with warnings.catch_warnings(), patch.dict(os.environ, nbgrader_environment(self.root)):
            warnings.simplefilter("ignore")  # SQLAlchemy's and nbgrader's own
            from nbgrader.api import Gradebook

            with Gradebook(f"sqlite:///{self.root / 'gradebook.db'}") as gradebook:
                graded = gradebook.find_submission_notebook(NOTEBOOK.removesuffix(".ipynb"), LAB, student)
                return {grade.name: (grade.auto_score, grade.max_score) for grade in graded.grades}

    def outputs(self, student: str) -> dict[str, list[dict]]:
        cells = read(self.root / "autograded" / student / LAB / NOTEBOOK)["cells"]
        return {mark(cell)["grade_id"]: cell["outputs"] for cell in cells if mark(cell) and cell["cell_type"] == "code"}

    def feedback(self, student: str) -> str:
        return (self.root / "feedback" / student / LAB / NOTEBOOK).with_suffix(".html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return Course(tmp_path_factory.mktemp("course"))


def lost(scores: Scores) -> set[str]:
    return {name for name, (score, points) in scores.items() if score is not None and score < points}


pytestmark = pytest.mark.xdist_group("nbgrader")


def test_nbgrader_releases_the_very_notebook_that_is_in_labs(course: Course) -> None:
    made = (course.root / "labs" / LAB / NOTEBOOK).read_bytes().replace(b"\r\n", b"\n")
    assert made == released(LAB1).read_bytes().replace(b"\r\n", b"\n")


def test_the_solution_earns_every_point_that_a_machine_can_give(course: Course) -> None:
    scores = course.scores("filled")
    by_hand = {name for name, (score, _) in scores.items() if score is None}
    assert lost(scores) == set() and by_hand == {"written"}
    assert sum(points for _, points in scores.values()) == sum(
        mark(cell)["points"] for cell in read(LAB1)["cells"] if mark(cell).get("grade")
    )


def test_an_unfilled_notebook_earns_nothing(course: Course) -> None:
    assert {score for score, _ in course.scores("unfilled").values()} == {0.0}


def test_a_wrong_piece_costs_its_own_points_and_the_gates(course: Course) -> None:
    assert lost(course.scores("wrong")) == {"check-kv-cache-bytes", "check-gate"}


def test_a_wrong_prediction_costs_nothing(course: Course) -> None:
    scores = course.scores("wrong")
    assert all(scores[name][0] == scores[name][1] == 1 for name in PREDICTIONS)


def test_what_an_answer_writes_to_stderr_costs_nothing(course: Course) -> None:
    score, points = course.scores("wrong")["check-model-bytes"]
    assert score == points


def kinds(outputs: list[dict]) -> list[str]:
    return [output.get("name", output["output_type"]) for output in outputs]


@pytest.mark.parametrize("student", ["filled", "wrong", "unfilled"])
def test_every_check_says_something_and_nothing_on_stderr(course: Course, student: str) -> None:
    outputs = {name: kinds(found) for name, found in course.outputs(student).items() if name.startswith("check-")}
    for name, found in outputs.items():
        assert found and "stderr" not in found, f"{name}: {found}"


def test_a_failing_check_shows_the_report_and_no_line_of_the_package(course: Course) -> None:
    (error,) = (
        output for output in course.outputs("wrong")["check-kv-cache-bytes"] if output["output_type"] == "error"
    )
    said = "\n".join(error["traceback"])
    for words in ("expected:", "got:", "your line:", "Keys only", "per_token * context * batch"):
        assert words in said
    assert "Traceback" not in said and "xinfer_lab/grading" not in said


def test_feedback_tells_the_student_what_was_expected_and_where_the_answer_parts_from_it(course: Course) -> None:
    page = course.feedback("wrong")
    assert "Keys only" in page and ">expected</th>" in page
