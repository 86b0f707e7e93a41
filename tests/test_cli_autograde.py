"""`xinfer-lab autograde`: a class in one command, and what it says of itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.class_submissions import ASSIGNMENT, NAME, Submission, hand_in, sample
from tests.command_line import execute, invoke, last_line, refused
from tests.project import ROOT
from xinfer_lab.commands import autograde as command
from xinfer_lab.course import sandbox as sandboxes
from xinfer_lab.course.marks import read_marks

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
    said = execute("autograde", ASSIGNMENT, "--jobs", 2, "--root", root, timeout=600)
    assert said.returncode == 0, said.stdout + said.stderr
    assert said.stdout == f"{ASSIGNMENT}: {len(CLASS)} marked, 0 not marked, 0 left.\n"
    assert "solated" in said.stderr and "2 jobs at a time" in said.stderr
    assert f"{len(CLASS)} done, 0 failed, 0 left" in said.stderr
    return root


@pytest.mark.parametrize("made", CLASS, ids=lambda made: made.what)
def test_each_is_marked_as_it_has_to_be(made: Submission, course: Path) -> None:
    marks = read_marks(course / "autograded" / made.student / ASSIGNMENT / NAME)
    assert marks is not None
    assert made.faults({name: status.value for name, status in marks.statuses.items()}, marks.notes) == []


def test_run_again_it_keeps_all_marks(course: Path) -> None:
    said = invoke("autograde", ASSIGNMENT, "--root", course)
    assert said.exit_code == 0
    assert last_line(said) == f"{ASSIGNMENT}: 0 marked, 0 not marked, 0 left, {len(CLASS)} had marks before."


def test_a_sandbox_that_is_not_there_is_refused(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes.shutil, "which", lambda name: None)
    said = refused(invoke("autograde", ASSIGNMENT, "--sandbox", "bubblewrap", "--root", course))
    assert said.startswith("--sandbox bubblewrap cannot be had: bubblewrap is not installed")


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_where_it_cannot_isolate_it_says_so_at_once(choice: str, course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes.shutil, "which", lambda name: None)
    said = invoke("autograde", ASSIGNMENT, "--sandbox", choice, "--root", course)
    assert said.exit_code == 0 and said.stderr.startswith("NOT isolated")


def test_ctrl_c_says_how_to_go_on(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "mark_class", stop)
    said = invoke("autograde", ASSIGNMENT, "--root", course)
    assert said.exit_code == 130 and "The same command goes on from here." in said.stderr


def test_who_handed_in_nothing_and_no_scheduler_are_refused(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refused_last(invoke("autograde", ASSIGNMENT, "--student", "nobody", "--root", course))
    assert said == f"xinfer-lab: nothing was handed in for {ASSIGNMENT} by nobody."
    from xinfer_lab.course import workers

    monkeypatch.setattr(workers, "ANSWER", 0.2)
    said = refused_last(invoke("autograde", ASSIGNMENT, "--scheduler", "tcp://127.0.0.1:9", "--root", course))
    assert said.startswith("xinfer-lab: no Dask scheduler answers at tcp://127.0.0.1:9")


def refused_last(said) -> str:
    assert said.exit_code == 2 and said.stdout == ""
    return said.stderr.splitlines()[-1]
