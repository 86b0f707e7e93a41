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
from xinfer_lab.grading.keep import keep, stays
from xinfer_lab.grading.piece import cases_from_data, cases_to_data
from xinfer_lab.grading.progress import note_guess, note_outcome, standing_after
from xinfer_lab.grading.report import Drawing, Passed, Report

__all__ = ["VISIBLE", "CheckFailed", "check", "examine", "examine_on"]

VISIBLE = 0
"""The seed of the cases that a visible check asks; hidden tests draw new ones each time."""


class CheckFailed(AssertionError):
    """An answer is not right yet. ``report`` says what was expected, what happened and where they part; ``after`` what
    there is to say besides."""

    def __init__(self, report: Report, after: Sequence[str] = ()) -> None:
        super().__init__(str(report))
        self.report, self.after = report, tuple(after)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback through this package: the report itself, and a line of room below,
        which the frame that JupyterLab draws lacks."""
        after = ["", *self.after] if self.after else []
        return [*str(self.report).splitlines(), *after, ""]


def check(piece: str, answer: object, *, seed: int | None = VISIBLE) -> None:
    """Ask ``answer`` the cases of ``piece`` and say whether it is right; raises `CheckFailed` where it is not.

    ``seed`` chooses the cases; None draws ones that nobody has seen. Says in a few lines that all is right, and how far
    the lab is then; prints nothing to stderr. `xinfer_lab.grading.progress` keeps what it said, where it was asked to.
    """
    report = examine(piece, answer, seed=secrets.randbits(32) if seed is None else seed)
    note_outcome(piece, report.passed)
    standing = standing_after(piece)
    if not report.passed:
        if report.picture is not None:
            _display(report.picture)
        # "Run All" ends at an error, perhaps far above the last cell, which is what the window shows then.
        stopped = f"Run All stops here: no cell below was run. {standing.passed} of {standing.points} points so far."
        raise CheckFailed(report, [line for line in (stopped, stays(piece)) if line])
    if "predict" in piece:
        note_guess(piece, answer)
    passed = Passed(report, (str(standing), keep(piece, answer)))
    if not _display(passed):
        print(passed)


def _display(shown: Drawing | Passed) -> bool:
    """Show a picture or a passed report, if this process is a notebook's kernel: then IPython is loaded and has a
    shell. Whether it is."""
    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        return False
    ipython.display.display(shown)
    return True


def examine(piece: str, answer: object, *, seed: int = VISIBLE) -> Report:
    """The report on ``answer``, by the same road as marking: what passes between recording and verifying is JSON
    text."""
    return examine_on(find_piece(piece).draw(seed), piece, answer)


def examine_on(cases: Sequence[Any], piece: str, answer: object) -> Report:
    """As `examine`, on ``cases`` that were drawn before: draw once to look at many answers."""
    asked = find_piece(piece)
    data = asked.record(answer, cases)
    return asked.verify(cases_from_data(cases_to_data(cases)), json.loads(json.dumps(data)))
