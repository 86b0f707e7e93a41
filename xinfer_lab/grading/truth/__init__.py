"""What is right, and what known wrong ideas would answer.

For the trusted side alone: no answer may import from here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["judge_of"]


def judge_of(piece: str) -> Any:
    """The judge of ``piece`` (``"lab1.layer_bytes"``), a `Judge` or a `ProgramJudge`. KeyError for a piece that has
    none.
    """
    judges: dict[str, Any] = import_module(f"xinfer_lab.grading.truth.{piece.partition('.')[0]}").JUDGES
    return judges[piece]
