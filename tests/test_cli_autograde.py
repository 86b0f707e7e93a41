"""`xinfer-lab autograde`: a class in one command, and what it says of itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.class_submissions import ASSIGNMENT, NAME, Submission, hand_in, sample
from tests.command_line import execute, invoke, refused
from tests.project import ROOT
from xinfer_lab.cli import autograde as command
from xinfer_lab.course import cluster
from xinfer_lab.course import sandbox as sandboxes
from xinfer_lab.course.mark_stamp import read_marks

pytestmark = [pytest.mark.process, pytest.mark.slow]

CLASS = sample()


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lab 1 with a class of twelve, marked in one command."""
    root = tmp_path_factory.mktemp("course")
    for name in ("solutions", "labs"):
        shutil.copytree(ROOT / name / ASSIGNMENT, root / name / ASSIGNMENT)
    shutil.copy(ROOT / "nbgrader_config.py", root)
    for one in CLASS:
        hand_in(one, root / "submitted")
    said = execute("autograde", ASSIGNMENT, "--jobs", 2, "--root", root)
    assert said.returncode == 1, said.stdout + said.stderr
    (unread,) = [made.student for made in CLASS if made.unreadable]
    first, second, third = said.stdout.splitlines()
    assert first == f"{ASSIGNMENT}: {len(CLASS) - 1} marked, 1 not marked, 0 left."
    assert second.startswith("These need attention")
    assert third.startswith(f"  {unread} was not marked: {NAME} is not valid JSON")
    assert "solated" in said.stderr and "2 jobs at a time" in said.stderr
    assert f"{len(CLASS) - 1} done, 1 failed, 0 left" in said.stderr
    return root


@pytest.mark.parametrize("made", CLASS, ids=lambda made: made.what)
def test_each_is_marked_as_it_has_to_be(made: Submission, course: Path) -> None:
    marks = read_marks(course / "autograded" / made.student / ASSIGNMENT / NAME)
    assert marks is not None
    assert made.faults({name: status.value for name, status in marks.statuses.items()}, marks.notes) == []


def test_run_again_it_keeps_all_marks(course: Path) -> None:
    said = invoke("autograde", ASSIGNMENT, "--root", course)
    assert said.exit_code == 1, "what cannot be read needs attention each time"
    first = said.stdout.splitlines()[0]
    assert first == f"{ASSIGNMENT}: 0 marked, 1 not marked, 0 left, {len(CLASS) - 1} had marks before."


def test_a_sandbox_that_is_not_there_is_refused(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes.shutil, "which", lambda name: None)
    said = refused(invoke("autograde", ASSIGNMENT, "--sandbox", "bubblewrap", "--root", course))
    assert said.startswith("--sandbox bubblewrap cannot be had: bubblewrap is not installed")


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_where_it_cannot_isolate_it_says_so_at_once(choice: str, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes.shutil, "which", lambda name: None)
    monkeypatch.setattr(sandboxes, "_is_root", lambda: False)  # as root it may be refused, by where Python lies
    said = invoke("autograde", ASSIGNMENT, "--sandbox", choice, "--root", course)
    assert "NOT isolated" in said.stderr.splitlines()[0], "and as root it is refused, unless that is asked for"


def test_ctrl_c_says_how_to_go_on(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "mark_class", stop)
    said = invoke("autograde", ASSIGNMENT, "--root", course)
    assert said.exit_code == 130 and "Run the same command to continue." in said.stderr


def test_who_handed_in_nothing_and_no_scheduler_are_refused(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refused_last(invoke("autograde", ASSIGNMENT, "--student", "nobody", "--root", course))
    assert said == f"xinfer-lab: nothing was handed in for {ASSIGNMENT} by nobody."
    monkeypatch.setattr(cluster, "ANSWER", 0.2)
    said = refused_last(invoke("autograde", ASSIGNMENT, "--scheduler", "tcp://127.0.0.1:9", "--root", course))
    assert said.startswith("xinfer-lab: no Dask scheduler answers at tcp://127.0.0.1:9")


def refused_last(said) -> str:
    assert said.exit_code == 2 and said.stdout == ""
    return said.stderr.splitlines()[-1]
