"""Explains why an answer could not be recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xinfer_lab.course.grade_cells import Check
from xinfer_lab.course.recorder_client import CellRun, Recording
from xinfer_lab.course.steps import Run, defined_names
from xinfer_lab.course.supervised import Ended
from xinfer_lab.course.transplant import Origin
from xinfer_lab.course.verdict import Status
from xinfer_lab.grading.report import TOO_LONG, Report

__all__ = ["explain_end", "explain_lack", "status_of_end"]


def status_of_end(ended: Ended) -> Status:
    """Timed out for what took too long, kernel died for all else."""
    return Status.TIMED_OUT if ended.cause in ("cpu", "idle", "wall", "budget") else Status.DIED


def explain_end(check: Check, ended: Ended) -> tuple[Status, Report]:
    """The answer was there, and ended the process that asked it."""
    status = status_of_end(ended)
    if ended.cause == "budget":
        headline = "It was not marked: the time for this notebook was up."
        hint = "Leave out cells that wait, or compute for long: what a cell takes counts for the whole notebook."
    elif status is Status.TIMED_OUT:
        headline, hint = TOO_LONG
    else:
        headline = "It ended the process that ran it."
        hint = "Leave out what ends Python (exit, os._exit), starts processes, or fills the memory."
    return status, Report(check.piece, False, headline, expected="an answer to each case", got=ended.words, hint=hint)


def explain_lack(
    check: Check, lacks: Mapping[str, Any], before: Sequence[Run], recording: Recording
) -> tuple[Status, Report]:
    """The answer is not there: its cell is missing, broken, or was stopped."""
    error, name = lacks["error"], lacks["name"]
    if lacks["denied"] is not None:
        return Status.FAILED, Report(
            check.piece,
            False,
            "It uses a module that holds the answer."
            if "holds" in lacks["denied"]
            else "It uses a module that no answer may use.",
            got=lacks["denied"],
            hint="Write this part yourself; the module is closed while the piece is graded.",
        )
    if name is None:
        return Status.FAILED, Report(
            check.piece,
            False,
            f"`{check.expression}` cannot be evaluated.",
            got=_words(error),
            hint="Run the cells above it again.",
        )
    culprit = _culprit(name, before, recording)
    if culprit is None:
        return Status.MISSING, Report(
            check.piece,
            False,
            f"`{name}` is not there.",
            expected=f"a cell above this check that defines `{name}`",
            got="none of the cells of this notebook that were run defines it",
            hint="Restart the kernel and run all cells from the top: that is what marking does.",
        )
    run, cell = culprit
    if cell.ended is not None:
        return status_of_end(cell.ended), Report(
            check.piece,
            False,
            f"`{name}` is not there: the cell {run.name} was stopped.",
            got=cell.ended.words,
            hint="Cells that define answers should do nothing else.",
        )
    assert cell.error is not None
    return Status.MISSING, Report(
        check.piece,
        False,
        f"`{name}` is not there: the cell {run.name} did not run to its end.",
        got=_words(cell.error),
        line=_line(run, cell.error),
        hint="Restart the kernel and run all cells from the top: that is what marking does.",
    )


def _culprit(name: str, before: Sequence[Run], recording: Recording) -> tuple[Run, CellRun] | None:
    """The last cell that should have defined ``name`` and did not get there; else the gap above, if it broke."""
    for run in reversed(before):
        cell = recording.cells.get(run.place, CellRun())
        if (cell.error is not None or cell.ended is not None) and name in defined_names(run.source, name):
            return run, cell
    # None names it. The gap above the check, if it broke, is the likely one.
    for run in reversed(before):
        cell = recording.cells.get(run.place, CellRun())
        if run.origin is Origin.ANSWER and (cell.error is not None or cell.ended is not None):
            return run, cell
        if run.origin is Origin.ANSWER:
            break
    return None


def _words(error: Mapping[str, Any]) -> str:
    return f"{error['type']}: {error['message']}" if error["message"] else str(error["type"])


def _line(run: Run, error: Mapping[str, Any]) -> str | None:
    number, lines = error["line"], run.source.splitlines()
    if not isinstance(number, int) or not 0 < number <= len(lines):
        return None
    return f"line {number}: {lines[number - 1].strip()[:200]}"
