"""The leaderboard: plans are run again, and what students claim is held against that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.marking import BARE
from tests.notebooks import SOLUTIONS, submission
from tests.project import ROOT
from xinfer_lab.course.lab import find_lab
from xinfer_lab.course.leaderboard import MOST_CLAIMS, Entry, claims_in, main, only_the_race, rank, table
from xinfer_lab.course.notebook import read_notebook
from xinfer_lab.grading.report import Report
from xinfer_lab.labs.lab6.given.race import RACE
from xinfer_lab.labs.lab6.race_line import RaceLine

(SOURCE,) = (path for path in SOLUTIONS if path.parent.name.startswith("lab6"))
LAB = SOURCE.parent.name
LIE = RaceLine(7, 1.0, "0123456789abcdef")


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The instructor's answers, handed in with a line that nobody has run."""
    notebook = submission(SOURCE)
    cell = next(cell for cell in notebook["cells"] if cell["id"] == "race")
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": [f"{LIE}\n", f"{LIE}\n"]}]
    path = tmp_path_factory.mktemp("submitted") / SOURCE.name
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


class Fake:
    """A marker that gives every plan the line of ``scores`` for the seed that is asked, or a failed report."""

    def __init__(self, scores: dict[str, float]) -> None:
        self.scores, self.asked, self.budget = scores, [], 900.0

    def mark(self, lab: Any, notebook: Any, *, until: float) -> Any:
        (cell,) = lab.graded
        (check,) = cell.checks
        self.asked.append((notebook, check.seed))
        score = self.scores.get(notebook)
        line = f"Within budget.\n{RaceLine(check.seed, score or 0.0, '0' * 16)}"
        report = Report(RACE, score is not None, line if score is not None else "It took too long and was stopped.")
        verdict = type("V", (), {"report": report})()
        return type("M", (), {"verdicts": (verdict,)})()


def test_only_the_race_is_asked_and_from_the_seed_that_was_given() -> None:
    (graded,) = only_the_race(find_lab(ROOT, LAB), 99).graded
    (check,) = graded.checks
    assert (check.piece, check.expression, check.seed) == (RACE, "plan", 99)
    with pytest.raises(ValueError, match="no cell that checks"):
        only_the_race(find_lab(ROOT, "lab1-residency"), 1)


def test_the_best_comes_first_and_who_has_no_line_is_told_why_at_the_end() -> None:
    marker = Fake({"ada": 0.9, "ben": 0.95})
    entries = rank(find_lab(ROOT, LAB), {"ada": "ada", "cy": "cy", "ben": "ben"}, {}, 3, marker)  # type: ignore[dict-item, arg-type]
    assert [entry.name for entry in entries] == ["ben", "ada", "cy"]
    assert "no line: It took too long and was stopped." in table(entries)
    assert {seed for _, seed in marker.asked} == {3}


def test_a_claim_is_run_again_on_its_own_seed_and_believed_only_if_it_comes_out_the_same() -> None:
    marker = Fake({"ada": 0.9})
    true, false = RaceLine(5, 0.9, "0" * 16), RaceLine(5, 0.99, "0" * 16)
    (entry,) = rank(find_lab(ROOT, LAB), {"ada": "ada"}, {"ada": [true, false]}, 3, marker)  # type: ignore[dict-item, arg-type]
    assert [seed for _, seed in marker.asked] == [3, 5, 5]
    assert not entry.honest and entry.claims == ((true, true), (false, true))
    said = table([entry])
    assert f"claim confirmed: {true}" in said and f"claim NOT confirmed: {false}" in said
    assert Entry("ben", None).honest


def test_a_submission_has_one_budget_for_all_that_it_claims() -> None:
    marker = Fake({"ada": 0.9})
    marker.budget = -1.0
    (entry,) = rank(find_lab(ROOT, LAB), {"ada": "ada"}, {"ada": [LIE]}, 3, marker)  # type: ignore[dict-item, arg-type]
    assert marker.asked == [] and entry.line is None and entry.claims == ((LIE, None),)
    assert "the time for this notebook was up" in table([entry])


def test_only_so_many_claims_are_run_again_and_a_hostile_file_has_none(tmp_path: Path) -> None:
    path = tmp_path / "many.ipynb"
    lines = "\n".join(str(RaceLine(seed, 1.0, "0" * 16)) for seed in range(99))
    path.write_text(json.dumps({"cells": [{"outputs": [{"text": lines}]}]}), encoding="utf-8")
    assert len(claims_in(path)) == MOST_CLAIMS
    for content in (
        "[" * 100_000,
        json.dumps({"cells": [{"outputs": [{"text": f"beat-the-link/2 seed={'9' * 9999}"}]}]}),
    ):
        path.write_text(content, encoding="utf-8")
        assert claims_in(path) == []
    assert "\x1b" not in table([Entry("a\x1b[2Jb", None)])


def test_lines_are_read_from_a_notebooks_outputs_each_once(handed_in: Path, tmp_path: Path) -> None:
    assert claims_in(handed_in) == [LIE]
    broken = tmp_path / "broken.ipynb"
    broken.write_text("[]", encoding="utf-8")
    assert claims_in(broken) == [] and claims_in(tmp_path / "missing.ipynb") == []


@pytest.mark.process
@pytest.mark.slow
def test_the_command_runs_the_plans_again_and_finds_the_lie(
    handed_in: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read_notebook(handed_in).cells
    status = main([str(handed_in), "--seed", "7", "--root", str(ROOT), "--sandbox", BARE])
    said = capsys.readouterr().out
    assert status == 1
    assert "beat-the-link/2 seed=7 score=" in said and f"claim NOT confirmed: {LIE}" in said


def test_a_course_without_the_lab_is_an_error_that_says_what_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["x.ipynb", "--seed", "1", "--root", str(tmp_path)]) == 2
    assert "no lab" in capsys.readouterr().err
