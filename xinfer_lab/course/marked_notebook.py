"""Reads a marked notebook: who wrote each cell, and its verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nbformat import NotebookNode

from xinfer_lab.course.lab import Lab
from xinfer_lab.course.notebook import parse_notebook
from xinfer_lab.course.outputs import NOTES, verdict_under
from xinfer_lab.course.transplant import Placed, Transplant, transplant
from xinfer_lab.course.verdict import Verdict

__all__ = ["MarkedNotebook", "read_marked"]


@dataclass(frozen=True, slots=True)
class MarkedNotebook:
    """``notes`` is Markdown from marking; ``notebook`` is what was marked; ``cells`` are the file's, place by place."""

    notes: str
    notebook: Transplant
    cells: tuple[NotebookNode, ...]

    def pairs(self) -> Iterator[tuple[Placed, NotebookNode]]:
        """Each cell as it was marked, and as it is in the file."""
        return zip(self.notebook.cells, self.cells, strict=True)

    def verdicts(self) -> dict[str, Verdict]:
        """The verdicts by grade id. A grade cell that was not marked has none."""
        found = (verdict_under(cell.get("outputs", ())) for cell in self.cells)
        return {verdict.grade_id: verdict for verdict in found if verdict is not None}


def read_marked(lab: Lab, marked: NotebookNode) -> MarkedNotebook:
    """Read ``marked``, as marking left it. Raises ValueError where it belongs to another release of ``lab``."""
    cells, notes = list(marked.cells), ""
    if cells and cells[0].get("id") == NOTES:
        notes = "\n".join(cells.pop(0).source.splitlines()[1:]).strip()
    notebook = transplant(lab.released, parse_notebook({**marked, "cells": cells}))
    if len(notebook.cells) != len(cells):
        raise ValueError(f"this notebook was marked with another release of {lab.assignment}; mark it anew")
    return MarkedNotebook(notes, notebook, tuple(cells))
