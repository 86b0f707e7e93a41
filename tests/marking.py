"""A small course for the tests of marking: a copy of the package with one more lab, its notebooks, and things that no
student may see.
"""

from __future__ import annotations

import copy
import json
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.left_out import bubblewrap_works
from tests.project import ROOT, STUCK
from xinfer_lab.course.lab import Lab, find_lab
from xinfer_lab.course.mark_submission import Marker
from xinfer_lab.course.notebook import parse_notebook
from xinfer_lab.course.recorder_client import RecordLimits
from xinfer_lab.course.sandbox import NoSandbox, Sandbox, open_sandbox
from xinfer_lab.course.supervised import Limits
from xinfer_lab.course.verdict import Marking

Cell = dict[str, Any]


def _bare() -> str:
    try:
        open_sandbox("none")
    except NoSandbox:
        return "as-root"  # these tests run as root, with a Python that no other user can read
    return "none"


BUBBLEWRAP = bubblewrap_works()
BARE = _bare()
"""The choice of a sandbox that is none."""
LIMITS = RecordLimits(
    process=Limits(memory=2 * 2**30, processes=24, idle=8, wall=STUCK), cell=1.5, case=0.5, total=60, slack=1.0
)
"""Small, so that what never ends is ended soon."""

ANSWERS = {
    "double": "def double(n):\n    return 2 * n",
    "triple": "def triple(n):\n    return n + double(n)",
    "choice": "choice = 'B'",
}
STUBS = {
    "double": "def double(n):\n    raise NotImplementedError('fill in about 1 line')",
    "triple": "def triple(n):\n    raise NotImplementedError('fill in about 1 line')",
    "choice": "choice = None",
    "streaming": "class Streaming:\n    pass",
}
STREAMING = (
    (ROOT / "xinfer_lab" / "residency" / "streaming.py")
    .read_text(encoding="utf-8")
    .split('__all__ = ["StreamingLayers"]')
)
STREAMING_ANSWER = STREAMING[0].split("from __future__ import annotations")[1] + STREAMING[1]


def _gap(name: str, *, filled: bool, marked: bool) -> str:
    """The source of a gap; ``marked`` as in an instructor's notebook, from which nbgrader makes the stub."""
    if not filled:
        return STUBS[name]
    if not marked:
        return ANSWERS[name]
    *kept, answer = ANSWERS[name].split("\n")
    indent = "    " if kept else ""
    stub = STUBS[name].split("\n")[-1].strip()
    return "\n".join([*kept, f"{indent}### BEGIN SOLUTION: {stub}", answer, f"{indent}### END SOLUTION"])


def code(name: str, source: str, **mark: Any) -> Cell:
    """A code cell with nbgrader's metadata, where there is any in ``mark``."""
    return _cell("code", name, source, mark) | {"outputs": [], "execution_count": None}


def text(name: str, source: str, **mark: Any) -> Cell:
    """A Markdown cell."""
    return _cell("markdown", name, source, mark)


def _cell(kind: str, name: str, source: str, mark: Mapping[str, Any]) -> Cell:
    nbgrader = {
        "grade": False,
        "solution": False,
        "locked": False,
        "task": False,
        "schema_version": 3,
        "grade_id": name,
    }
    metadata = {"nbgrader": {**nbgrader, **mark}} if mark else {}
    return {"cell_type": kind, "id": name, "metadata": metadata, "source": source}


def _check(name: str, points: int, hidden: str, answer: str) -> Cell:
    return code(f"check-{name}", f'check("lab9.{name}", {answer}){hidden}', grade=True, locked=True, points=points)


def cells(*, filled: bool, hidden: bool, stream: bool) -> list[Cell]:
    """The cells of the small lab, or of the one with a queue program (``stream``)."""
    sources = {name: _gap(name, filled=filled, marked=hidden) for name in ANSWERS}

    def fresh(name: str, answer: str) -> str:
        tests = f'\n### BEGIN HIDDEN TESTS\ncheck("lab9.{name}", {answer}, seed=None)\n### END HIDDEN TESTS'
        return tests if hidden else ""

    notebook = [
        text("title", "# A small lab"),
        code("setup", "import math\nfrom xinfer_lab.grading import check", locked=True),
        code("double", sources["double"], solution=True),
        _check("double", 2, fresh("double", "double"), "double"),
        text("explore-text", "Explore."),
        code("explore", "explored = [double(n) for n in range(3)]\nprint(explored)"),
    ]
    if stream:
        answer = STREAMING_ANSWER.replace("StreamingLayers", "Streaming") if filled else STUBS["streaming"]
        notebook += [
            code("streaming", answer, solution=True),
            _check("streaming", 5, fresh("streaming", "Streaming"), "Streaming"),
        ]
    notebook += [
        code("triple", sources["triple"], solution=True),
        _check("triple", 3, fresh("triple", "triple"), "triple"),
        code("choice", sources["choice"], solution=True),
        _check("choice", 1, "", "choice"),
        text(
            "written",
            "### BEGIN SOLUTION\nBecause.\n### END SOLUTION" if hidden else "Because." if filled else "*Write here.*",
            grade=True,
            solution=True,
            points=3,
        ),
    ]
    return notebook


def notebook(listed: Sequence[Cell]) -> dict[str, Any]:
    """A notebook of format 4.5."""
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": copy.deepcopy(list(listed))}


class Course:
    """A course with the labs ``lab9-small`` and ``lab9-stream``, a package that knows their pieces, a gradebook and a
    submission.
    """

    def __init__(self, root: Path) -> None:
        self.root = root / "course"
        self.package = _package(root / "installed")
        for stream in (False, True):
            name = f"lab9-{'stream' if stream else 'small'}"
            for folder, filled in (("solutions", True), ("labs", False)):
                path = self.root / folder / name / "lab.ipynb"
                path.parent.mkdir(parents=True)
                path.write_text(
                    json.dumps(notebook(cells(filled=filled, hidden=filled, stream=stream))), encoding="utf-8"
                )
        other = self.root / "submitted" / "student-002" / "lab9-small" / "lab.ipynb"
        other.parent.mkdir(parents=True)
        other.write_text(json.dumps(notebook(cells(filled=True, hidden=False, stream=False))), encoding="utf-8")
        with sqlite3.connect(self.root / "gradebook.db") as gradebook:
            gradebook.execute("create table grade (auto_score real)")
            gradebook.execute("insert into grade values (0)")

    def lab(self, name: str = "lab9-small") -> Lab:
        """One of its labs."""
        return find_lab(self.root, name)

    def marker(self, sandbox: Sandbox, limits: RecordLimits = LIMITS) -> Marker:
        """A marker with its package."""
        return Marker(sandbox, limits, package=self.package)


def _package(folder: Path) -> Path:
    package = folder / "xinfer_lab"
    shutil.copytree(ROOT / "xinfer_lab", package)
    shutil.copytree(ROOT / "tests" / "marking_lab", package / "labs" / "lab9")
    return package


def hand_in(
    changed: Mapping[str, str] | None = None, *, own: Mapping[str, str] | None = None, stream: bool = False
) -> list[Cell]:
    """The cells of a right submission but for ``changed`` sources by cell; ``own`` are cells of the student's, by the
    cell they follow.
    """
    listed = cells(filled=True, hidden=False, stream=stream)
    done: list[Cell] = []
    for cell in listed:
        done.append({**cell, "source": (changed or {}).get(cell["id"], cell["source"])})
        if own and cell["id"] in own:
            done.append(code(f"my-{cell['id']}", own[cell["id"]]))
    assert not set(changed or ()) - {cell["id"] for cell in listed}
    assert not set(own or ()) - {cell["id"] for cell in listed}
    return done


def scores(marking: Marking) -> dict[str, float | None]:
    """Score by grade cell, without "check-"."""
    return {verdict.grade_id.removeprefix("check-"): verdict.score for verdict in marking.verdicts}


def statuses(marking: Marking) -> dict[str, str]:
    """Status by grade cell, without "check-"."""
    return {verdict.grade_id.removeprefix("check-"): verdict.status.value for verdict in marking.verdicts}


def said(marking: Marking, name: str) -> str:
    """The report on a grade cell."""
    return str(next(verdict.report for verdict in marking.verdicts if verdict.grade_id == f"check-{name}"))


def mark(marker: Marker, lab: Lab, listed: Sequence[Cell]) -> Marking:
    """Mark the cells as a notebook that was handed in."""
    return marker.mark(lab, parse_notebook(notebook(listed)))
