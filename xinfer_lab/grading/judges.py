"""Finds the judges of a lab. For the trusted side only: no answer may import this, nor what it finds."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["judge_of"]


def judge_of(piece: str) -> Any:
    """The judge of ``piece`` (``"lab1.layer_bytes"``), a `Judge` or a `ProgramJudge`.

    Raises KeyError for a piece that has none.
    """
    judges: dict[str, Any] = import_module(f"xinfer_lab.labs.{piece.partition('.')[0]}.judge.judges").JUDGES
    return judges[piece]
