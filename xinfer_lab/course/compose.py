"""The notebook that comes back from marking: transplanted, a verdict under each grade cell, notes at its top."""

from __future__ import annotations

from typing import Any

from nbformat import NotebookNode, from_dict

from xinfer_lab.course.job import Marked
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.mark_stamp import marks_to_data
from xinfer_lab.course.outputs import NOTES, cell_outputs, notes_text
from xinfer_lab.course.transplant import Placed, Transplant

__all__ = ["KEY", "compose", "empty", "place", "put_verdicts"]

KEY = "xinfer_lab"
"""Where in the metadata of a notebook its notes are while it is marked, and then what `read_marks` reads."""


def compose(lab: Lab, marked: Marked) -> NotebookNode:
    """The notebook of ``marked`` as it comes back."""
    nb = place(marked.marking.notebook)
    put_verdicts(nb, marked.marking.notebook, marked, lab)
    return nb


def empty() -> NotebookNode:
    """A notebook without cells."""
    node: NotebookNode = from_dict({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})  # type: ignore[no-untyped-call]
    return node


def place(found: Transplant) -> NotebookNode:
    """The transplanted notebook, without outputs; its notes are in its metadata."""
    nb, own = empty(), 0
    for placed in found.cells:
        own += placed.cell.id is None
        nb.cells.append(_node(placed, placed.cell.id or f"own-{own}"))
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}, KEY: {"notes": list(found.notes)}}
    nb.metadata = from_dict(metadata)  # type: ignore[no-untyped-call]
    return nb


def put_verdicts(nb: NotebookNode, notebook: Transplant, marked: Marked, lab: Lab) -> None:
    """Write the verdicts of ``marked`` into ``nb``, which holds the cells of ``notebook``."""
    marking = marked.marking
    for at, (cell, placed) in enumerate(zip(nb.cells, notebook.cells, strict=True)):
        if cell.cell_type == "code":
            cell.outputs = cell_outputs(placed, at, marking)
    if marking.notes:
        nb.cells.insert(0, _cell("markdown", notes_text(marking.notes), NOTES, {}))
    nb.metadata[KEY] = from_dict(marks_to_data(marked, lab))  # type: ignore[no-untyped-call]


def _node(placed: Placed, name: str) -> NotebookNode:
    cell = placed.cell
    extra = {"attachments": dict(cell.attachments)} if cell.attachments else {}
    return _cell(cell.kind, cell.source, name, dict(cell.metadata), **extra)


def _cell(kind: str, source: str, name: str, metadata: dict[str, Any], **extra: Any) -> NotebookNode:
    # nbformat's own makers of cells validate each by its schema: a second for every few notebooks of a class.
    if kind == "code":
        extra = {**extra, "outputs": [], "execution_count": None}
    fields = {"cell_type": kind, "id": name, "source": source, "metadata": metadata, **extra}
    node: NotebookNode = from_dict(fields)  # type: ignore[no-untyped-call]
    return node
