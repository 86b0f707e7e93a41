"""A sample of the bank through the real `nbgrader autograde`, Labs 2 to 5: the gradebook holds what headers say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.answer_bank import CHECK, Answer, answers, defines, functions_of
from tests.nbgrader_course import LabCourse, lost
from tests.notebooks import SOLUTIONS, Notebook, mark, read, submission, text

pytestmark = [pytest.mark.process, pytest.mark.slow]

WRONG = {
    "lab2": ("StagingRing/wrong/never_waits", "SerialLayers/cheat/resident_source"),
    "lab3": ("wait_until_read/wrong/host_waits", "prefetch/cheat/uninitialised_memory"),
    "lab4": ("ordering/wrong/resident", "ensure/cheat/resident_source"),
    "lab5": ("evict/wrong/returned_not_noted", "acquire/cheat/forges_a_wait"),
}
"""One wrong answer and one that cheats for each lab; a student hands in both, and all else right."""


@dataclass
class Class:
    """A lab that was marked: what it was, its course, and the two answers that must cost points."""

    source: Path
    course: LabCourse
    bad: tuple[Answer, ...]

    def grade_cell(self, check: str) -> str:
        """The graded cell that looks at ``check``."""
        cells = read(self.source)["cells"]
        return next(mark(cell)["grade_id"] for cell in cells if (check, mark(cell).get("grade")) in _looks(cell))


def _looks(cell: dict) -> set[tuple[str, bool]]:
    return {(check, True) for check, _ in CHECK.findall(text(cell))}


def by_lab(source: Path) -> str:
    return source.parent.name.partition("-")[0]


def with_answers(source: Path, chosen: tuple[Answer, ...]) -> Notebook:
    """The solution with ``chosen`` in the places of their functions."""

    def change(cell: str, answer: str) -> str:
        own = [one for one in chosen if defines(answer, one.function)]
        return own[0].path.read_text(encoding="utf-8") if own else answer

    return submission(source, change)


def variants(lab: str) -> tuple[Answer, ...]:
    """A correct answer of another shape than the instructor's for every function of ``lab``."""
    found = {
        answer.function: answer
        for answer in answers("correct")
        if answer.lab == lab and answer.path.stem != "reference"
    }
    assert set(found) == functions_of(lab)
    return tuple(found.values())


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Class]:
    known = {answer.name: answer for kind in ("wrong", "cheat") for answer in answers(kind)}

    chosen = [source for source in SOLUTIONS if by_lab(source) in WRONG]
    # Made before there are threads: pytest's own folder is not made twice.
    folders = {source: tmp_path_factory.mktemp(by_lab(source)) for source in chosen}

    def marked(source: Path) -> Class:
        lab = by_lab(source)
        course = LabCourse(folders[source], source)
        bad = tuple(known[f"{lab}/{name}"] for name in WRONG[lab])
        course.submit("variants", with_answers(source, variants(lab)))
        course.submit("wrong", with_answers(source, bad))
        course.submit("unfilled", read(course.released))
        course.autograde()
        return Class(source, course, bad)

    with ThreadPoolExecutor(2) as pool:
        return {by_lab(one.source): one for one in pool.map(marked, chosen)}


@pytest.mark.parametrize("lab", WRONG)
def test_correct_answers_of_other_shapes_earn_every_point(classes: dict[str, Class], lab: str) -> None:
    scores = classes[lab].course.scores("variants")
    assert lost(scores) == set()
    assert {name for name, (score, _) in scores.items() if score is None} == {"written"}


@pytest.mark.parametrize("lab", WRONG)
def test_a_wrong_answer_and_a_cheat_cost_the_points_of_their_pieces_alone(classes: dict[str, Class], lab: str) -> None:
    one = classes[lab]
    wanted = {one.grade_cell(check) for answer in one.bad for check in answer.checks}
    assert lost(one.course.scores("wrong")) == wanted


@pytest.mark.parametrize("lab", WRONG)
def test_the_marked_notebook_says_what_each_header_demands(classes: dict[str, Class], lab: str) -> None:
    one = classes[lab]
    outputs = one.course.outputs("wrong")
    for answer in one.bad:
        below = [output for check in answer.checks for output in outputs[one.grade_cell(check)]]
        words = " ".join(" ".join(output.get("traceback", ())) for output in below)
        assert " ".join(answer.phrase.split()) in " ".join(words.split()), f"{answer.name}: {words}"


@pytest.mark.parametrize("lab", WRONG)
def test_an_unfilled_notebook_earns_nothing(classes: dict[str, Class], lab: str) -> None:
    assert {score for score, _ in classes[lab].course.scores("unfilled").values()} == {0.0}
