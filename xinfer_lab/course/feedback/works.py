"""Finds a student's own cells, and the graded cell below which each of them is shown."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode

from xinfer_lab.course.lab import Lab
from xinfer_lab.course.steps import defined_names
from xinfer_lab.course.transplant import Placed

__all__ = ["Work", "Works"]

MOST = 600_000
"""Characters of sources and outputs on one page; what comes after that is named, not shown."""


@dataclass(frozen=True, slots=True)
class Work:
    """A cell of the student's: its source, what it printed, and what the instructor wrote about it."""

    name: str
    kind: str
    source: str
    printed: str = ""
    comment: str = ""
    attachments: Mapping[str, Any] | None = None


class Works:
    """Takes a notebook's cells in order, and hands them out to its graded cells.

    A graded cell gets what defines a name that it asks about, and what stands above it and belongs to no later one.
    """

    def __init__(self, lab: Lab) -> None:
        self._asked = {
            graded.grade_id: {name for check in graded.checks for name in _names(check.expression)}
            for graded in lab.graded
        }
        self._room = MOST
        self._all: list[tuple[Work, set[str]]] = []
        self._waiting: list[Work] = []

    def take(self, placed: Placed, cell: NotebookNode) -> None:
        """Add a cell of the student's: as it was marked, and as it is in the marked notebook."""
        comment = str(cell.metadata.get("nbgrader", {}).get("comment") or "")
        printed = "".join(one.text for one in cell.get("outputs", ()) if one.output_type == "stream")
        theirs = placed.cell
        defined: set[str] = set()
        if self._room <= 0:
            words = "(left out: this notebook is too long to be shown as a whole)"
            work = Work(placed.name, "raw", words, comment=comment)
        else:
            work = Work(placed.name, theirs.kind, theirs.source, printed, comment, theirs.attachments)
            if theirs.kind == "code":
                every = set().union(*self._asked.values())
                defined = {name for name in every if name in defined_names(theirs.source, name)}
        self._room -= len(theirs.source) + len(printed)
        self._all.append((work, defined))
        self._waiting.append(work)

    def hand_out(self, grade_id: str) -> tuple[Work, ...]:
        """What is shown below the graded cell ``grade_id``, which comes after all that was taken."""
        asked = self._asked.pop(grade_id, set())
        later = set().union(*self._asked.values())
        shown = tuple(
            work
            for work, defined in self._all
            if defined & asked or (any(work is other for other in self._waiting) and not defined & later)
        )
        self._waiting = [work for work in self._waiting if not any(work is other for other in shown)]
        return shown

    def rest(self) -> tuple[Work, ...]:
        """What was shown nowhere."""
        return tuple(self._waiting)


def _names(expression: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Name)}
