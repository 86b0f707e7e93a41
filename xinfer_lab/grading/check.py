"""The line under each piece in a notebook: records the answer, verifies the recording, reports.

It takes the road of marking within one process: what passes between recording and verifying is JSON text. So an answer
cannot pass here by means that marking would refuse.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Sequence
from typing import Any

from xinfer_lab.grading.catalog import find_piece
from xinfer_lab.grading.keep import keep
from xinfer_lab.grading.piece import cases_from_data, cases_to_data
from xinfer_lab.grading.progress import note_outcome
from xinfer_lab.grading.report import Drawing, Report

__all__ = ["VISIBLE", "CheckFailed", "check", "examine", "examine_on"]

VISIBLE = 0
"""The seed of the cases that a visible check asks; hidden tests draw new ones each time."""


class CheckFailed(AssertionError):
    """An answer is not right yet. ``report`` says what was expected, what happened and where they part."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback through this package: the report itself, and a line of room below,
        which the frame that JupyterLab draws lacks."""
        return [*str(self.report).splitlines(), ""]


def check(piece: str, answer: object, *, seed: int | None = VISIBLE) -> None:
    """Ask ``answer`` the cases of ``piece`` and say whether it is right; raises `CheckFailed` where it is not.

    ``seed`` chooses the cases; None draws ones that nobody has seen. Prints one line where all is right, and nothing
    to stderr. `xinfer_lab.grading.progress` keeps what it said, where it was asked to.
    """
    report = examine(piece, answer, seed=secrets.randbits(32) if seed is None else seed)
    note_outcome(piece, report.passed)
    if not report.passed:
        if report.picture is not None:
            _display(report.picture)
        raise CheckFailed(report)
    print(report)
    if kept := keep(piece, answer):
        print(kept)


def _display(picture: Drawing) -> None:
    """Show ``picture`` if this process is a notebook's kernel: then IPython is loaded and has a shell."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        ipython.display.display(picture)


def examine(piece: str, answer: object, *, seed: int = VISIBLE) -> Report:
    """The report on ``answer``, by the same road as marking: what passes between recording and verifying is JSON
    text."""
    return examine_on(find_piece(piece).draw(seed), piece, answer)


def examine_on(cases: Sequence[Any], piece: str, answer: object) -> Report:
    """As `examine`, on ``cases`` that were drawn before: draw once to look at many answers."""
    asked = find_piece(piece)
    data = asked.record(answer, cases)
    return asked.verify(cases_from_data(cases_to_data(cases)), json.loads(json.dumps(data)))
