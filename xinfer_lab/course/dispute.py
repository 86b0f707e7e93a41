"""Settles a dispute: marks a marked notebook again with its own cases, and keeps the evidence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from xinfer_lab.course.grade_cells import Check
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.mark_submission import Marker
from xinfer_lab.course.marked_notebook import read_marked
from xinfer_lab.course.package_view import PACKAGE
from xinfer_lab.course.recorder_client import Answer, Recording, RecordLimits
from xinfer_lab.course.sandbox import Sandbox
from xinfer_lab.course.steps import Run
from xinfer_lab.course.verdict import Status, Verdict
from xinfer_lab.course.verifier_client import Drawn
from xinfer_lab.grading.report import Report

__all__ = ["Asked", "Heard", "hear"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One check that was asked again: its cases and what was recorded, as JSON, and the report on it.

    ``data`` is None where no answer could be recorded.
    """

    piece: str
    seed: int
    cases: list[Any]
    data: object
    status: Status
    report: Report

    def write(self, folder: Path) -> Path:
        """Write cases, recording and report below ``folder``; the folder that they are in."""
        inside = folder / f"{self.piece}-{self.seed}"
        inside.mkdir(parents=True, exist_ok=True)
        contents = {"cases.json": self.cases, "recording.json": self.data, "report.json": self.report.to_dict()}
        for name, content in contents.items():
            (inside / name).write_text(json.dumps(content), encoding="utf-8", newline="\n")
        (inside / "report.txt").write_text(f"{self.report}\n", encoding="utf-8", newline="\n")
        return inside


@dataclass(frozen=True, slots=True)
class Heard:
    """A grade cell: the verdict that stands (None: it was not marked), the one of now, and what was asked for it."""

    stands: Verdict | None
    now: Verdict
    asked: tuple[Asked, ...]

    @property
    def same(self) -> bool:
        """Whether the cell came out as before, for the same reason."""
        return self.stands is not None and (self.stands.status, self.stands.report) == (
            self.now.status,
            self.now.report,
        )


def hear(
    lab: Lab,
    path: Path,
    sandbox: Sandbox,
    *,
    only: Sequence[str] = (),
    limits: RecordLimits | None = None,
    package: Path = PACKAGE,
) -> list[Heard]:
    """Mark the marked notebook ``path`` again with the very cases that its verdicts name, and write nothing anywhere.

    ``only`` are the pieces or grade ids to return, all if it is empty. Raises ValueError for a notebook of another
    release, OSError where it cannot be read, and `MarkingError`.
    """
    marked = read_marked(lab, nbformat.read(path, as_version=4))  # type: ignore[no-untyped-call]
    stands = marked.verdicts()
    seeds: dict[str, int] = {}
    for graded in lab.graded:
        verdict = stands.get(graded.grade_id)
        for check, (piece, seed) in zip(graded.checks, verdict.seeds if verdict else (), strict=False):
            if check.seed is None:
                seeds[piece] = seed
    marker = _Hearing(sandbox, limits, package=package)
    marker.use(seeds)
    with marker:
        marking = marker.mark_transplant(lab, marked.notebook)
    heard = []
    for verdict in marking.verdicts:
        pieces = [piece for piece, _ in verdict.seeds]
        if verdict.report is not None and (not only or {verdict.grade_id, *pieces} & set(only)):
            asked = tuple(one for one in marker.asked if (one.piece, one.seed) in verdict.seeds)
            heard.append(Heard(stands.get(verdict.grade_id), verdict, asked))
    return heard


class _Hearing(Marker):
    """A marker that draws the cases that it is told, and keeps what was asked."""

    def use(self, seeds: dict[str, int]) -> None:
        """Draw the hidden cases of these pieces from these seeds."""
        self._seeds.update(seeds)
        self.asked: list[Asked] = []

    def _judge(
        self, check: Check, answer: Answer, drawn: Drawn, before: Sequence[Run], recording: Recording, until: float
    ) -> tuple[Status, Report]:
        status, report = super()._judge(check, answer, drawn, before, recording, until)
        self.asked.append(Asked(check.piece, self._seed(check), drawn.cases, answer.data, status, report))
        return status, report
