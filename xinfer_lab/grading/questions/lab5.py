"""The pieces of Lab 5, the hybrid page pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from xinfer_lab.grading.piece import Case, Observed, Piece, Question
from xinfer_lab.grading.questions.lab5_policy import play_clock, scans, traces, traces_with_pins
from xinfer_lab.grading.questions.lab5_pool import DENIED, GATE_PIECES, POOL_PIECES
from xinfer_lab.grading.questions.lab5_table import play_table, refused_calls, table_calls
from xinfer_lab.grading.values import Value

__all__ = ["PIECES"]

LINES = ["A", "B", "C", "D", "E", "F"]
"""The lines of the short pool with which the lab opens."""

Inputs = Mapping[str, Value]


def _itself(answer: Any, inputs: Inputs, observed: Observed) -> object:
    return answer


def _scan(answer: Any, inputs: Inputs, observed: Observed) -> object:
    return answer(inputs["pages"], inputs["frames"], inputs["passes"])


def _once(label: str, **inputs: Value) -> Callable[[Random], list[Case]]:
    return lambda random: [Case(label, inputs)]


def _question(name: str, points: int, drawn: Any, ask: Any = _itself) -> Question:
    return Question(f"lab5.{name}", points, drawn, ask, DENIED, 3.0)


PIECES: tuple[Piece, ...] = (
    _question("predict_article", 1, _once("your prediction", choices=["A", "B", "C", "D"])),
    _question("explain_article", 2, _once("your table", rows=4, choices=LINES)),
    _question("table", 3, table_calls, play_table),
    _question("table_refuses", 2, refused_calls, play_table),
    _question("clock", 3, traces, play_clock),
    _question("clock_pins", 2, traces_with_pins, play_clock),
    *POOL_PIECES,
    _question("predict_scan", 1, _once("your prediction", low=0, high=18)),
    _question("explain_scan", 1, _once("your choice", choices=["A", "B", "C", "D"])),
    _question("lru_hits", 2, scans, _scan),
    _question("best_hits", 3, scans, _scan),
    *GATE_PIECES,
)
"""In the notebook's order."""
