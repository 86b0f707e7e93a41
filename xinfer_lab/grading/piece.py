"""What a piece of a lab is: its points, the cases drawn for it, how an answer is asked, and how what it said is
judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from xinfer_lab.grading.report import Report
from xinfer_lab.grading.values import BadData, Value, decode, encode

__all__ = ["ALWAYS_DENIED", "Case", "Observed", "Piece", "Question", "cases_from_data", "cases_to_data"]

ALWAYS_DENIED = ("xinfer_lab.grading.truth",)
"""Modules that no answer may use: they know what is right."""

Observed = dict[str, Value]
"""What was seen while an answer ran, besides what it returned (bytes read of a file, say)."""


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration that an answer is asked about.

    ``label`` is for people; ``inputs`` hold only what `encode` can carry.
    """

    label: str
    inputs: Mapping[str, Value]


def cases_to_data(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """``cases`` as plain JSON."""
    return [{"label": case.label, "inputs": encode(dict(case.inputs))} for case in cases]


def cases_from_data(data: object) -> list[Case]:
    """The cases that `cases_to_data` wrote. Raises `BadData` for anything else."""
    if not isinstance(data, list):
        raise BadData("cases must be a list")
    cases = []
    for item in data:
        if not isinstance(item, dict) or set(item) != {"label", "inputs"} or not isinstance(item["label"], str):
            raise BadData("a case must have a label and inputs")
        inputs = decode(item["inputs"])
        if not isinstance(inputs, dict) or not all(isinstance(key, str) for key in inputs):
            raise BadData("a case's inputs must be a dict by name")
        cases.append(Case(item["label"], inputs))
    return cases


class Piece(Protocol):
    """A graded piece. ``record`` runs where the student's code runs and knows no right answer; ``verify`` runs where
    no student's code does.

    Between them passes only JSON: ``cases`` one way, ``data`` the other. A piece that is answered by a function
    returns values (`Question` is that kind); one that is answered by a queue program returns the command stream that
    the program issued.
    """

    @property
    def name(self) -> str:
        """Lab and piece, ``"lab1.layer_bytes"``."""

    @property
    def points(self) -> int:
        """What the piece is worth."""

    @property
    def denied_modules(self) -> tuple[str, ...]:
        """Modules that hold the answer; not importable while the piece is recorded."""

    def draw(self, seed: int) -> list[Case]:
        """The cases for ``seed``; the same seed draws the same cases."""

    def record(self, answer: object, cases: Sequence[Case]) -> dict[str, Any]:
        """Run ``answer`` on ``cases``; what it did as plain JSON.

        Never raises for what the answer does, `KeyboardInterrupt` aside.
        """

    def verify(self, cases: Sequence[Case], data: object) -> Report:
        """Judge ``data`` against the truth, recomputed from ``cases``. Never raises for what ``data`` holds."""


@dataclass(frozen=True, slots=True)
class Question:
    """A piece answered by a value or by a pure function, judged by what is returned.

    ``ask(answer, inputs, observed)`` runs in the student's process: it calls the answer on one case's inputs and
    returns what came back; it may note more in ``observed``. The judge of the same name in `xinfer_lab.grading.truth`
    knows what is right.
    """

    name: str
    points: int
    cases: Callable[[Random], list[Case]]
    ask: Callable[[Any, Mapping[str, Value], Observed], object]
    denied_modules: tuple[str, ...] = ()
    cpu_seconds: float = field(default=10.0)

    def draw(self, seed: int) -> list[Case]:
        """The cases for ``seed``."""
        return self.cases(Random(f"{self.name} {seed}"))

    def record(self, answer: object, cases: Sequence[Case]) -> dict[str, Any]:
        """What ``answer`` returned or raised on each of ``cases``, as plain JSON."""
        from xinfer_lab.grading.record import record_values

        return record_values(self, answer, cases)

    def verify(self, cases: Sequence[Case], data: object) -> Report:
        """The report on ``data``, by the judge in `xinfer_lab.grading.truth`."""
        from xinfer_lab.grading.truth import judge_of
        from xinfer_lab.grading.verify import verify_values

        return verify_values(self.name, judge_of(self.name), cases, data)
