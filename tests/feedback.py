"""Marked notebooks and their pages, made without a sandbox and without nbgrader: from reports that are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from nbformat import NotebookNode, v4

from tests.notebooks import Notebook
from tests.project import ROOT
from xinfer_lab.course.feedback.exporter import render
from xinfer_lab.course.feedback.page import Page, Points, page_of
from xinfer_lab.course.lab import Lab, find_lab
from xinfer_lab.course.notebook import parse_notebook
from xinfer_lab.course.outputs import NOTES, cell_outputs, notes_text
from xinfer_lab.course.transplant import transplant
from xinfer_lab.course.verdict import Marking, Status, Verdict
from xinfer_lab.grading.report import Report


@cache
def lab(assignment: str) -> Lab:
    """One of the project's labs, by its folder."""
    return find_lab(ROOT, assignment)


def verdicts(which: Lab, reports: Mapping[str, tuple[Status, Report]]) -> list[Verdict]:
    """The verdicts on all graded cells: those of ``reports`` by grade id, the others passed."""
    found = []
    for graded in which.graded:
        if graded.by_hand:
            found.append(Verdict(graded.grade_id, graded.points, Status.BY_HAND))
            continue
        passed = Status.PASSED, Report(graded.checks[0].piece, True, "As it should be.", checked=1)
        status, report = reports.get(graded.grade_id, passed)
        found.append(Verdict(graded.grade_id, graded.points, status, report, (("piece", 1),)))
    return found


def marked(
    which: Lab,
    submitted: Notebook,
    reports: Mapping[str, tuple[Status, Report]] | None = None,
    *,
    printed: str = "",
    notes: Sequence[str] = (),
) -> NotebookNode:
    """``submitted`` as marking leaves it; each of its cells printed ``printed``."""
    notebook = transplant(which.released, parse_notebook(submitted))
    found = Marking(
        tuple(verdicts(which, reports or {})),
        (),
        notebook,
        dict.fromkeys(range(len(notebook.cells)), printed),
    )
    return as_marked(found, notes)


def as_marked(marking: Marking, notes: Sequence[str] = ()) -> NotebookNode:
    """The notebook that nbgrader keeps of ``marking``."""
    cells = []
    if notes:
        cells.append(v4.new_markdown_cell(notes_text(notes), id=NOTES))
    for place, placed in enumerate(marking.notebook.cells):
        metadata = dict(placed.cell.metadata)
        if placed.cell.kind == "code":
            outputs = cell_outputs(placed, place, marking)
            cells.append(v4.new_code_cell(placed.cell.source, metadata=metadata, outputs=outputs))
        else:
            extra = {"attachments": dict(placed.cell.attachments)} if placed.cell.attachments else {}
            cells.append(v4.new_markdown_cell(placed.cell.source, metadata=metadata, **extra))
        cells[-1]["id"] = placed.cell.id or f"own-{place}"
    return v4.new_notebook(cells=cells)


def points(notebook: NotebookNode, changed: Mapping[str, Points] | None = None) -> dict[str, Points]:
    """What the gradebook would hold: full points for what passed, none for what did not, ``changed`` by grade id."""
    found: dict[str, Points] = {}
    for cell in notebook.cells:
        mark: dict[str, Any] = cell.metadata.get("nbgrader", {})
        if mark.get("grade"):
            most = float(mark["points"])
            failed = any(output.output_type == "error" for output in cell.get("outputs", ()))
            by_hand = mark["solution"]
            score = 0.0 if failed or by_hand else most
            found[mark["grade_id"]] = Points(score, most, None if by_hand else score)
    return {**found, **(changed or {})}


def page(which: Lab, notebook: NotebookNode, changed: Mapping[str, Points] | None = None, **more: Any) -> Page:
    """The page for a notebook that `marked` made."""
    return page_of(which, notebook, points(notebook, changed), "student-001", **more)


def html(which: Lab, notebook: NotebookNode, changed: Mapping[str, Points] | None = None, **more: Any) -> str:
    """The HTML of `page`."""
    return render(page(which, notebook, changed, **more))
