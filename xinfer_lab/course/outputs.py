"""Writes the outputs under the cells of a marked notebook: nbgrader reads marks from them, people reasons."""

from __future__ import annotations

from collections.abc import Sequence

from nbformat import NotebookNode, from_dict

from xinfer_lab.course.clean import svg_image
from xinfer_lab.course.transplant import Origin, Placed
from xinfer_lab.course.verdict import Marking, Status, Verdict

__all__ = ["NOTES", "cell_outputs", "notes_text", "unmarked", "verdict_under"]

KEY = "xinfer_lab"
"""Where in the metadata of an output the verdict is, as data."""

NOTES = "marking-notes"
"""The id of the cell at the top of a marked notebook that holds the notes."""


def _output(kind: str, **fields: object) -> NotebookNode:
    if kind == "display_data":
        fields = {"data": {}, "metadata": {}, **fields}
    node: NotebookNode = from_dict({"output_type": kind, **fields})  # type: ignore[no-untyped-call]
    return node


def unmarked(placed: Placed) -> list[NotebookNode]:
    """What stands under a cell until its verdict is there: an error under a grade cell, nothing under others."""
    if placed.origin is not Origin.CHECK:
        return []
    words = "This check was not marked; it earns nothing."
    return [_output("error", ename="NotMarked", evalue=words, traceback=[words])]


def cell_outputs(placed: Placed, place: int, marking: Marking) -> list[NotebookNode]:
    """What stands under the code cell at ``place`` once the notebook is marked."""
    if placed.origin is Origin.CHECK:
        verdict = next((one for one in marking.verdicts if one.grade_id == placed.name), None)
        return unmarked(placed) if verdict is None or verdict.report is None else _verdict_outputs(verdict)
    # Never to stderr: nbgrader gives nothing for a cell that writes there.
    text = marking.printed.get(place, "")
    return [_output("stream", name="stdout", text=text)] if text else []


def _verdict_outputs(verdict: Verdict) -> list[NotebookNode]:
    report = verdict.report
    assert report is not None
    data = {"text/plain": str(report) if verdict.status is Status.PASSED else report.headline}
    if verdict.status is not Status.PASSED and report.picture is not None:
        # As an image: it has names in it that a student chose.
        image = str(svg_image(report.picture.svg, report.picture.alt))
        data = {"text/html": image, "text/plain": report.picture.alt}
    shown = _output("display_data", data=data, metadata={KEY: verdict.to_dict()})
    if verdict.status is Status.PASSED:
        return [shown]
    name = "".join(word.title() for word in verdict.status.value.split())
    return [_output("error", ename=name, evalue=report.headline, traceback=str(report).splitlines()), shown]


def verdict_under(outputs: Sequence[NotebookNode]) -> Verdict | None:
    """The verdict that `cell_outputs` wrote under a cell, if there is one."""
    for output in outputs:
        if KEY in output.get("metadata", {}):
            return Verdict.from_dict(output["metadata"][KEY])
    return None


def notes_text(notes: Sequence[str]) -> str:
    """The notes on a notebook, as Markdown in which nothing of a student's is anything but text."""
    return "**Notes from marking**\n\n" + "\n".join(f"- {_plain(note)}" for note in notes)


def _plain(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("\n", " ")
    return "".join("\\" + letter if letter in "\\`*_{}[]#!|" else letter for letter in escaped)
