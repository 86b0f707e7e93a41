"""The trusted process that draws cases and verifies recordings. Of a student's work it sees only data.

One request a line: ``{"draw": piece, "seed": n}`` or ``{"verify": piece, "cases": [...], "data": {...}}``; one line of
answer each.
"""

from __future__ import annotations

import json
import os
import sys
from random import Random
from typing import Any

from xinfer_lab.course.confine import end_with_parent
from xinfer_lab.grading.catalog import find_piece
from xinfer_lab.grading.check import VISIBLE
from xinfer_lab.grading.piece import cases_from_data, cases_to_data
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.rooms import hidden_in

__all__ = ["main"]


def main() -> int:
    """Answer requests until standard input ends."""
    end_with_parent()
    channel = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not be taken for an answer
    with os.fdopen(channel, "w", encoding="utf-8") as out:
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = _draw(request) if "draw" in request else _verify(request)
            except ValueError as error:
                answer = {"refused": str(error)}
            out.write(json.dumps(answer) + "\n")
            out.flush()
    return 0


def _draw(request: dict[str, Any]) -> dict[str, Any]:
    piece = find_piece(request["draw"])
    cases = piece.draw(request["seed"])
    if request["seed"] != VISIBLE and isinstance(piece, Question):
        # What is sound and what is to be refused comes in an order that no answer can count on.
        Random(f"order {request['draw']} {request['seed']}").shuffle(cases)
    return {
        "cases": cases_to_data(cases),
        "denied": sorted({*piece.denied_modules, *hidden_in(request["draw"])}),
        "cpu_seconds": float(getattr(piece, "cpu_seconds", 30.0)),
    }


def _verify(request: dict[str, Any]) -> dict[str, Any]:
    report = find_piece(request["verify"]).verify(cases_from_data(request["cases"]), request["data"])
    return {"report": report.to_dict()}


if __name__ == "__main__":
    sys.exit(main())
