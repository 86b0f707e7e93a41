"""Notebooks as the tests need them: read, fill in, take apart."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.project import ROOT

Notebook = dict[str, Any]
Cell = dict[str, Any]

SOLUTIONS = sorted((ROOT / "solutions").glob("*/*.ipynb"))
MARK = re.compile(r"^ *### (BEGIN|END) SOLUTION.*\n?", re.MULTILINE)


def read(path: Path) -> Notebook:
    """The notebook at ``path``."""
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def released(source: Path) -> Path:
    """The student's notebook that is made from ``source``."""
    return ROOT / "labs" / source.parent.name / source.name


def text(cell: Cell) -> str:
    """A cell's source as one string."""
    return "".join(cell["source"])


def mark(cell: Cell) -> dict[str, Any]:
    """nbgrader's metadata of a cell; empty where it has none."""
    found: dict[str, Any] = cell["metadata"].get("nbgrader", {})
    return found


def submission(source: Path, change: Callable[[str, str], str] | None = None) -> Notebook:
    """The released notebook, filled in with the instructor's answers; ``change(cell id, answer)`` may alter each."""
    answers = {cell["id"]: MARK.sub("", text(cell)) for cell in read(source)["cells"] if mark(cell).get("solution")}
    notebook = copy.deepcopy(read(released(source)))
    for cell in notebook["cells"]:
        if cell["id"] in answers:
            answer = answers[cell["id"]]
            cell["source"] = change(cell["id"], answer) if change else answer
    return notebook
