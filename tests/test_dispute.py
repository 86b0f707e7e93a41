"""Disputes: a marked notebook is asked again with the cases that it was marked with, and its streams are replayed."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import pytest

import xinfer_lab.cli.dispute as command
from tests.answer_bank import answers, checks_of, run
from tests.command_line import invoke, refused
from tests.feedback import as_marked
from tests.marking import BARE, LIMITS, Course, hand_in, mark
from tests.project import ROOT
from xinfer_lab.course.dispute import Heard, hear
from xinfer_lab.course.sandbox import open_sandbox
from xinfer_lab.course.verdict import Status
from xinfer_lab.grading import cases_to_data, find_piece

pytestmark = pytest.mark.process

LAB = "lab9-small"
WRONG = "def double(n):\n    return 2 * n if n < 5 else 0"
TRIPLE = "def triple(n):\n    return 3 * n"


class Marked(Course):
    """The small course with one marked notebook, in which `double` is wrong and all else is right."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.sandbox = open_sandbox(BARE)
        self.path = self.root / "autograded" / "student-001" / LAB / "lab.ipynb"
        self.path.parent.mkdir(parents=True)
        shutil.copy(ROOT / "nbgrader_config.py", self.root)
        with self.marker(self.sandbox) as marker:
            self.marking = mark(marker, self.lab(LAB), hand_in({"double": WRONG, "triple": TRIPLE}))
        self.write(as_marked(self.marking))

    def write(self, notebook: nbformat.NotebookNode) -> None:
        nbformat.write(notebook, self.path)

    def hear(self, **more: Any) -> list[Heard]:
        return hear(self.lab(LAB), self.path, self.sandbox, limits=LIMITS, package=self.package, **more)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Marked:
    return Marked(tmp_path_factory.mktemp("dispute"))


@pytest.fixture
def quick(course: Marked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "hear", partial(hear, limits=LIMITS, package=course.package))


@pytest.fixture(scope="module")
def heard(course: Marked) -> list[Heard]:
    return course.hear()


def test_the_same_cases_are_asked_and_the_same_comes_out(course: Marked, heard: list[Heard]) -> None:
    stands = {verdict.grade_id: verdict for verdict in course.marking.verdicts if verdict.report is not None}
    assert [one.now for one in heard] == list(stands.values())
    assert all(one.same for one in heard)
    hidden = [(one.piece, one.seed) for cell in heard for one in cell.asked if one.seed != 0]
    assert hidden and set(hidden) <= {seed for verdict in stands.values() for seed in verdict.seeds}


def test_what_is_kept_can_be_verified_without_running_the_students_code(heard: list[Heard], tmp_path: Path) -> None:
    (asked,) = (one for one in heard[0].asked if not one.report.passed)
    inside = asked.write(tmp_path)
    assert json.loads((inside / "recording.json").read_text(encoding="utf-8")) == asked.data
    assert json.loads((inside / "cases.json").read_text(encoding="utf-8")) == asked.cases
    assert (inside / "report.txt").read_text(encoding="utf-8") == f"{asked.report}\n"


def test_only_what_is_asked_for_is_returned(course: Marked) -> None:
    assert [one.now.grade_id for one in course.hear(only=["check-triple"])] == ["check-triple"]
    assert [one.now.grade_id for one in course.hear(only=["lab9.triple"])] == ["check-triple"]


def test_the_command_says_what_came_out_and_changes_nothing_of_the_course(
    course: Marked, quick: None, tmp_path: Path
) -> None:
    before = {path: path.read_bytes() for path in course.root.rglob("*") if path.is_file()}
    said = invoke("dispute", LAB, "student-001", "--out", tmp_path / "kept", "--sandbox", BARE, "--root", course.root)
    assert said.exit_code == 0, said.output
    assert "Every verdict is as before." in said.output and "lab9.double: not yet." in said.output
    assert {path: path.read_bytes() for path in course.root.rglob("*") if path.is_file()} == before
    assert sorted(path.name for path in (tmp_path / "kept" / "lab9.double-0").iterdir()) == [
        "cases.json", "recording.json", "report.json", "report.txt",
    ]  # fmt: skip


def test_a_mark_that_does_not_stand_is_named(course: Marked, quick: None, tmp_path: Path) -> None:
    notebook = as_marked(course.marking)
    for cell in notebook.cells:
        if cell["id"] == "check-double":
            data = cell.outputs[-1]["metadata"]["xinfer_lab"]
            data |= {"status": Status.PASSED.value}
    course.write(notebook)
    said = invoke("dispute", LAB, "student-001", "--out", tmp_path, "--sandbox", BARE, "--root", course.root)
    course.write(as_marked(course.marking))
    assert said.exit_code == 1
    assert "Different from before: check-double." in said.output and "DIFFERENT" in said.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((LAB, "student-009"), "student-009 has no marked notebook of lab9-small"),
        ((LAB, "student-001", "--piece", "lab9.none"), "has no grade cell lab9.none; it has check-double"),
        (("lab7-none", "student-001"), "no lab 'lab7-none'"),
        ((LAB, "student-001", "--sandbox", "paper"), "paper"),
    ],
)
def test_the_command_refuses_what_is_not_there(
    course: Marked, quick: None, arguments: tuple[str, ...], words: str
) -> None:
    sandbox = () if "--sandbox" in arguments else ("--sandbox", BARE)
    assert words in refused(invoke("dispute", *arguments, *sandbox, "--root", course.root))


def record(check: str, answer: object, folder: Path) -> Path:
    """What `xinfer-lab dispute` keeps of an answer."""
    piece = find_piece(check)
    cases = piece.draw(0)
    (folder / "cases.json").write_text(json.dumps(cases_to_data(cases)), encoding="utf-8")
    (folder / "recording.json").write_text(json.dumps(piece.record(answer, cases)), encoding="utf-8")
    return folder


def recorded(check: str, name: str, folder: Path) -> Path:
    """What is kept of the bank's answer ``name``."""
    (answer,) = (one for kind in ("wrong", "correct") for one in answers(kind) if one.name == name)
    return record(check, run(answer)[checks_of(answer.lab)[check]], folder)


def rows(output: str) -> dict[str, str]:
    """What each order gave."""
    orders = ("timed", "copies_first", "copies_last", "random(1)", "random(2)")
    lines = [line.split() for line in output.splitlines()]
    return {line[0]: " ".join(line[1:]) for line in lines if line and line[0] in orders}


RACE = "lab3/wait_until_read/wrong/no_wait"
RIGHT = next(one.name for one in answers("correct") if one.function == "wait_until_read")


def test_a_race_shows_in_a_replay_of_the_recorded_stream(tmp_path: Path) -> None:
    said = invoke("replay", recorded("lab3.wait_until_read", RACE, tmp_path), "--case", 1)
    assert said.exit_code == 1, said.output
    found = rows(said.output)
    assert len(found) == 5 and any("max abs diff = 0 " not in f"{words} " for words in found.values())
    assert " 0 hazards" not in said.output and "hazard" in said.output
    assert (tmp_path / "timeline-1.svg").read_text(encoding="utf-8").startswith("<svg")
    assert json.loads((tmp_path / "trace-1.json").read_text(encoding="utf-8"))["traceEvents"]
    assert not (tmp_path / "timeline-2.svg").exists()


def test_a_right_stream_gives_the_resident_bytes_in_every_order(tmp_path: Path) -> None:
    said = invoke("replay", recorded("lab3.wait_until_read", RIGHT, tmp_path), "--case", 1)
    assert said.exit_code == 0, said.output
    assert all("vs resident max abs diff = 0" in words for words in rows(said.output).values())
    assert "0 hazards, 0 state faults" in said.output


def test_an_answer_that_raised_says_so(tmp_path: Path) -> None:
    def wait_until_read(*arguments: object) -> None:
        raise NotImplementedError("fill in")

    said = invoke("replay", record("lab3.wait_until_read", wait_until_read, tmp_path), "--case", 1)
    assert said.exit_code == 0 and "The answer raised NotImplementedError" in said.output


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"piece": 3}', "names no piece"),
        ("[]", "names no piece"),
        ('{"piece": "lab1.layer_bytes", "x": NaN}', "which is not a JSON number"),
        ("{", "cannot be read"),
        ('{"schema": 1, "piece": "lab1.layer_bytes", "defined": null, "outcomes": []}', "it has no command stream"),
        ('{"schema": 1, "piece": "lab3.gate", "defined": null, "outcomes": [{}]}', "cannot be replayed"),
        ('{"schema": 2, "piece": "lab3.gate", "defined": null, "outcomes": []}', "another version"),
    ],
)
def test_what_is_no_recording_of_a_queue_program_is_refused(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(json.dumps(cases_to_data(find_piece("lab3.gate").draw(0))), encoding="utf-8")
    (tmp_path / "recording.json").write_text(content, encoding="utf-8")
    assert words in refused(invoke("replay", tmp_path))


def test_a_case_that_is_not_there_is_refused(tmp_path: Path) -> None:
    folder = recorded("lab3.wait_until_read", RIGHT, tmp_path)
    assert "there is no case 99" in refused(invoke("replay", folder, "--case", 99))
