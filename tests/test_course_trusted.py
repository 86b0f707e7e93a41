"""The trusted process survives what a recording does to it; the command prints one notebook's verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.marking import BARE, Course
from tests.notebooks import SOLUTIONS, submission
from tests.project import ROOT
from tests.recorder import load_apart
from xinfer_lab.course.mark_file import main
from xinfer_lab.course.verifier_client import MarkingError, Trusted
from xinfer_lab.grading.catalog import pieces_of
from xinfer_lab.grading.rooms import LABS, hidden_in

pytestmark = pytest.mark.process

LAB1 = next(path for path in SOLUTIONS if path.parent.name == "lab1-residency")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return Course(tmp_path_factory.mktemp("trusted"))


@pytest.fixture(scope="module")
def trusted(course: Course) -> Iterator[Trusted]:
    process = Trusted(course.package, verify_cpu=1.0)
    process.draw("lab9.double", 0)
    yield process
    process.close()


def recorded(piece: str, value: object) -> dict:
    return {
        "schema": 1,
        "piece": piece,
        "defined": None,
        "outcomes": [{"returned": value, "observed": {"$": "dict", "items": []}, "line": None}],
    }


@pytest.mark.parametrize("value", ["crash", "hang", "raise"])
def test_a_recording_that_breaks_the_judge_fails_and_the_next_is_judged(value: str, trusted: Trusted) -> None:
    cases = trusted.draw("lab9.fragile", 0).cases
    broken = trusted.verify("lab9.fragile", cases, recorded("lab9.fragile", value))
    assert not broken.passed and "could not be verified" in broken.headline
    assert trusted.verify("lab9.fragile", cases, recorded("lab9.fragile", "fine")).passed


@pytest.mark.parametrize(
    "data",
    [
        None,
        7,
        [],
        {},
        {"outcomes": []},
        {"passed": True},
        {"schema": 1, "piece": "lab9.double", "defined": None, "outcomes": []},
        {"schema": True, "piece": "lab9.double", "defined": None, "outcomes": [{}]},
    ],
)
def test_data_of_any_shape_fails_and_breaks_nothing(data: object, trusted: Trusted) -> None:
    drawn = trusted.draw("lab9.double", 1)
    assert not trusted.verify("lab9.double", drawn.cases, data).passed


def test_a_piece_that_does_not_exist_is_the_instructors_fault(trusted: Trusted) -> None:
    with pytest.raises(MarkingError, match=r"lab9\.nothing"):
        trusted.draw("lab9.nothing", 0)


@pytest.mark.slow
def test_the_command_prints_the_verdicts_of_a_notebook(tmp_path, capsys) -> None:
    path = tmp_path / "residency.ipynb"
    path.write_text(json.dumps(submission(LAB1)), encoding="utf-8")
    assert main([str(path), "--lab", "lab1-residency", "--root", str(ROOT)]) == 0
    printed = capsys.readouterr().out
    assert "olated" in printed.splitlines()[0]
    assert "total                     31 of 31" in printed and "written" in printed


@pytest.mark.slow
def test_the_same_seed_gives_the_same_cases_and_json_tells_them(tmp_path, capsys) -> None:
    path = tmp_path / "broken.ipynb"
    path.write_text("{", encoding="utf-8")
    told = []
    for _ in range(2):
        assert (
            main(
                [
                    str(path),
                    "--lab",
                    "lab1-residency",
                    "--root",
                    str(ROOT),
                    "--seed",
                    "7",
                    "--json",
                    "--sandbox",
                    BARE,
                ]
            )
            == 0
        )
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1] and told[0]["score"] == 0 and "not valid JSON" in told[0]["notes"][0]
    assert all(
        verdict["status"] in ("missing", "failed") and verdict["report"]
        for verdict in told[0]["verdicts"]
        if verdict["score"] is not None
    )
    assert ["lab1.layer_bytes", 7] in told[0]["verdicts"][1]["seeds"]


def test_a_lab_that_is_not_there_is_told(tmp_path, capsys) -> None:
    assert main([str(tmp_path / "a.ipynb"), "--lab", "lab0", "--root", str(ROOT)]) == 2
    assert "lab1-residency" in capsys.readouterr().err


def test_every_piece_of_every_lab_can_be_recorded_without_what_it_denies(tmp_path: Path) -> None:
    """The recorder loads a piece where its denied modules are absent."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for lab in LABS:
        for piece in pieces_of(lab):
            groups.setdefault(tuple(sorted({*piece.denied_modules, *hidden_in(piece.name)})), []).append(piece.name)
    for denied, names in groups.items():
        load_apart(names, denied, tmp_path)
