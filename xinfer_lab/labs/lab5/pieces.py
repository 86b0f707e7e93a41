"""The pieces of Lab 5, the hybrid page pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xinfer_lab.grading.asking import arguments, itself, once
from xinfer_lab.grading.piece import Piece
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.values import Value
from xinfer_lab.labs.lab5.policy import play_clock
from xinfer_lab.labs.lab5.policy_cases import scans, traces, traces_with_pins
from xinfer_lab.labs.lab5.pool import DENIED, GATE_PIECES, POOL_PIECES
from xinfer_lab.labs.lab5.table import play_table
from xinfer_lab.labs.lab5.table_cases import refused_calls, table_calls

__all__ = ["PIECES"]

LINES = ["A", "B", "C", "D", "E", "F"]
"""The lines of the short pool with which the lab opens."""

Inputs = Mapping[str, Value]


SCAN = arguments("pages", "frames", "passes")


def _question(name: str, points: int, drawn: Any, ask: Any = itself) -> Question:
    return Question(f"lab5.{name}", points, drawn, ask, DENIED, 3.0)


PIECES: tuple[Piece, ...] = (
    _question("predict_article", 1, once("your prediction", choices=["A", "B", "C", "D"])),
    _question("explain_article", 2, once("your table", rows=4, choices=LINES)),
    _question("table", 3, table_calls, play_table),
    _question("table_refuses", 2, refused_calls, play_table),
    _question("clock", 3, traces, play_clock),
    _question("clock_pins", 2, traces_with_pins, play_clock),
    _question("predict_scan", 1, once("your prediction", low=0, high=18)),
    _question("explain_scan", 1, once("your choice", choices=["A", "B", "C", "D"])),
    _question("lru_hits", 2, scans, SCAN),
    _question("best_hits", 3, scans, SCAN),
    *POOL_PIECES,
    *GATE_PIECES,
)
"""In the notebook's order."""
