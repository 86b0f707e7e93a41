"""`Question`: a piece answered by a value or by a pure function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from xinfer_lab.grading.piece import Case, Observed
from xinfer_lab.grading.record_values import record_values
from xinfer_lab.grading.report import Report
from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify_values import verify_values

__all__ = ["Question"]


@dataclass(frozen=True, slots=True)
class Question:
    """A piece answered by a value or by a pure function, judged by what is returned.

    ``ask(answer, inputs, observed)`` runs in the student's process: it calls the answer on one case's inputs and
    returns what came back; it may note more in ``observed``. The judge of the same name in its lab's
    ``judge/judges.py`` knows what is right.
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
        return record_values(self, answer, cases)

    def verify(self, cases: Sequence[Case], data: object) -> Report:
        """The report on ``data``, by the judge in its lab's ``judge/judges.py``."""
        # Imported here: where an answer is recorded, this module exists and the judges do not.
        from xinfer_lab.grading.judges import judge_of

        return verify_values(self.name, judge_of(self.name), cases, data)
