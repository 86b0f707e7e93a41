"""Race a plan of Lab 6: one line to compare with others."""

from __future__ import annotations

from xinfer_lab.grading.check import examine
from xinfer_lab.labs.lab6.race_line import find_lines

__all__ = ["RACE", "race"]

RACE = "lab6.gate"
"""The piece whose cases are raced."""


def race(plan: object, seed: int) -> str:
    """The leaderboard line of ``plan`` in the cases drawn from ``seed``; where it does not run to its end, the report
    that says why.

    The line is made by the road of a check: recorded, then verified from the recording alone.
    """
    report = examine(RACE, plan, seed=seed)
    return str(find_lines(report.headline)[0]) if report.passed else str(report)
