"""A verdict on one grade cell, and the marking of a whole submission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from xinfer_lab.course.transplant import Transplant
from xinfer_lab.grading.report import Report

__all__ = ["Marking", "Status", "Verdict"]


class Status(Enum):
    """How a grade cell came out. All but ``PASSED`` and ``BY_HAND`` earn nothing."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    DIED = "kernel died"
    MISSING = "missing"
    BY_HAND = "graded by hand"
    NOT_MARKED = "not marked"
    """Marking itself did not finish; nothing is said about the answer."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on the grade cell ``grade_id``. ``report`` is there unless the instructor grades it: no zero is bare.

    ``seeds`` are those of the cases that were asked, by piece, so that a verdict can be had again.
    """

    grade_id: str
    points: float
    status: Status
    report: Report | None = None
    seeds: tuple[tuple[str, int], ...] = ()

    @property
    def score(self) -> float | None:
        """Points earned; None until the instructor has graded it."""
        if self.status is Status.BY_HAND:
            return None
        return self.points if self.status is Status.PASSED else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain JSON."""
        report = self.report.to_dict() if self.report else None
        return {
            "grade_id": self.grade_id,
            "points": self.points,
            "score": self.score,
            "status": self.status.value,
            "report": report,
            "seeds": [list(seed) for seed in self.seeds],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Verdict:
        """The verdict that `to_dict` wrote. Raises KeyError, TypeError or ValueError for anything else."""
        report = None if data["report"] is None else Report.from_dict(data["report"])
        seeds = tuple((str(piece), int(seed)) for piece, seed in data["seeds"])
        return cls(str(data["grade_id"]), float(data["points"]), Status(data["status"]), report, seeds)


@dataclass(frozen=True, slots=True)
class Marking:
    """A submission's verdicts in the notebook's order; ``notes`` on the notebook itself; what each cell of it printed,
    by place; a digest of each command stream that it issued, by piece.
    """

    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]
    notebook: Transplant
    printed: Mapping[int, str]
    streams: Mapping[str, str] = field(default_factory=dict)

    @property
    def score(self) -> float:
        """Points earned so far."""
        return sum(verdict.score or 0.0 for verdict in self.verdicts)

    @property
    def points(self) -> float:
        """Points that a machine can give."""
        return sum(verdict.points for verdict in self.verdicts if verdict.status is not Status.BY_HAND)

    def to_dict(self) -> dict[str, Any]:
        """Verdicts and notes as plain JSON."""
        verdicts = [verdict.to_dict() for verdict in self.verdicts]
        return {"score": self.score, "points": self.points, "notes": list(self.notes), "verdicts": verdicts}
