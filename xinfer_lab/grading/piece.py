"""Defines a piece of a lab: its points, its cases, how an answer is asked, and how the recording is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from xinfer_lab.grading.report import Report
from xinfer_lab.grading.values import BadData, Value, decode, encode

__all__ = ["CHANGED", "Case", "Observed", "Piece", "cases_from_data", "cases_to_data", "unlabelled"]

CHANGED = "changed"
"""In what was observed: the names of the arguments that the answer overwrote."""

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


def unlabelled(data: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Cases as `cases_to_data` wrote them, for the process of an answer: a label says what a case is for."""
    return [{**case, "label": ""} for case in data]


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
