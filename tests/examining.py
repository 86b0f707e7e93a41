"""An answer under several checks, by the road of a notebook's check, with no run of it done twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from xinfer_lab.grading import Report, cases_from_data, cases_to_data, find_piece
from xinfer_lab.grading.programs.record_program import ProgramPiece

__all__ = ["Examiner", "drawn"]


@cache
def drawn(check: str, seed: int) -> str:
    """The cases of ``check`` for ``seed``, as JSON: drawing some takes longer than judging an answer on them."""
    return json.dumps(cases_to_data(find_piece(check).draw(seed)))


class Examiner:
    """The reports on what ``names`` holds, by the name that a check looks at.

    Checks may ask for the same run and judge it by other rules, as those of Lab 6's race do: it is recorded once.
    ``cpu_seconds``: the most processor time of a recording, where it is less than the piece's own.
    """

    def __init__(self, names: Mapping[str, Any], cpu_seconds: float = float("inf")) -> None:
        self._names, self._cpu_seconds = names, cpu_seconds
        self._runs: dict[tuple[object, ...], Any] = {}

    def report(self, check: str, name: str, seed: int) -> Report:
        """What ``check`` says of the answer called ``name``, on the cases of ``seed``."""
        piece = find_piece(check)
        piece = replace(piece, cpu_seconds=min(piece.cpu_seconds, self._cpu_seconds))
        own = (piece.run, piece.denied_modules, piece.cpu_seconds) if isinstance(piece, ProgramPiece) else (check,)
        key = (*own, name, drawn(check, seed))
        if key not in self._runs:
            cases = cases_from_data(json.loads(drawn(check, seed)))
            self._runs[key] = json.loads(json.dumps(piece.record(self._names[name], cases)))
        data = {**self._runs[key], "piece": check}
        return piece.verify(cases_from_data(json.loads(drawn(check, seed))), data)
