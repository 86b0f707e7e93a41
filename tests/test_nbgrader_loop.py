"""The whole loop through the real nbgrader: release, three submissions, autograde, feedback."""

from __future__ import annotations

import pytest

from tests.nbgrader_course import LabCourse, lost
from tests.notebooks import SOLUTIONS, mark, read, released, submission

LAB1 = SOLUTIONS[0]
LAB, NOTEBOOK = LAB1.parent.name, LAB1.name
PREDICTIONS = {"check-predict-embedding", "check-predict-cache", "check-predict-pool"}


def wrong_cache(cell: str, answer: str) -> str:
    """An answer that forgets the values in one piece, writes to stderr in another, and predicts wrongly."""
    if cell == "kv-cache-bytes":
        return answer.replace("2 * config", "config")
    if cell == "model-bytes":
        return answer.replace("    table =", '    import warnings\n    warnings.warn("a note")\n    table =', 1)
    if cell == "predict-cache":
        return answer.replace('"D"', '"A"')
    return answer


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> LabCourse:
    course = LabCourse(tmp_path_factory.mktemp("course"), LAB1)
    course.submit("filled", submission(LAB1))
    course.submit("unfilled", read(course.released))
    course.submit("wrong", submission(LAB1, wrong_cache))
    course.autograde()
    course.nbgrader("generate_feedback", LAB)
    return course


pytestmark = pytest.mark.process


def test_nbgrader_releases_the_very_notebook_that_is_in_labs(course: LabCourse) -> None:
    made = (course.root / "labs" / LAB / NOTEBOOK).read_bytes().replace(b"\r\n", b"\n")
    assert made == released(LAB1).read_bytes().replace(b"\r\n", b"\n")


def test_the_solution_earns_every_point_that_a_machine_can_give(course: LabCourse) -> None:
    scores = course.scores("filled")
    by_hand = {name for name, (score, _) in scores.items() if score is None}
    assert lost(scores) == set() and by_hand == {"written"}
    assert sum(points for _, points in scores.values()) == sum(
        mark(cell)["points"] for cell in read(LAB1)["cells"] if mark(cell).get("grade")
    )


def test_an_unfilled_notebook_earns_nothing(course: LabCourse) -> None:
    assert {score for score, _ in course.scores("unfilled").values()} == {0.0}


def test_a_wrong_piece_costs_its_own_points_and_the_gates(course: LabCourse) -> None:
    assert lost(course.scores("wrong")) == {"check-kv-cache-bytes", "check-gate"}


def test_a_wrong_prediction_costs_nothing(course: LabCourse) -> None:
    scores = course.scores("wrong")
    assert all(scores[name][0] == scores[name][1] == 1 for name in PREDICTIONS)


def test_what_an_answer_writes_to_stderr_costs_nothing(course: LabCourse) -> None:
    score, points = course.scores("wrong")["check-model-bytes"]
    assert score == points


def kinds(outputs: list[dict]) -> list[str]:
    return [output.get("name", output["output_type"]) for output in outputs]


@pytest.mark.parametrize("student", ["filled", "wrong", "unfilled"])
def test_every_check_says_something_and_nothing_on_stderr(course: LabCourse, student: str) -> None:
    outputs = {name: kinds(found) for name, found in course.outputs(student).items() if name.startswith("check-")}
    for name, found in outputs.items():
        assert found and "stderr" not in found, f"{name}: {found}"


def test_a_failing_check_shows_the_report_and_no_line_of_the_package(course: LabCourse) -> None:
    (error,) = (
        output for output in course.outputs("wrong")["check-kv-cache-bytes"] if output["output_type"] == "error"
    )
    said = "\n".join(error["traceback"])
    for words in ("expected:", "got:", "your line:", "Keys only", "per_token * context * batch"):
        assert words in said
    assert "Traceback" not in said and "xinfer_lab/grading" not in said


def test_feedback_tells_the_student_what_was_expected_and_where_the_answer_parts_from_it(course: LabCourse) -> None:
    page = course.feedback("wrong")
    assert "Keys only" in page and ">expected</th>" in page
