"""What is right in the small lab."""

from __future__ import annotations

import os
from typing import Any

from xinfer_lab.grading.verify_values import Judge

__all__ = ["JUDGES"]


def _break(inputs: Any, outcome: Any) -> None:
    """A judge that some recordings break."""
    if outcome.value == "crash":
        os._exit(3)
    while outcome.value == "hang":
        pass
    if outcome.value == "raise":
        raise RuntimeError("a judge that is broken")


class _Judges(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        from xinfer_lab.grading.programs.run_rules import (
            each_step_uploads_once,
            no_hazard,
            parity,
            right_layers,
            uploads_overlap,
        )
        from xinfer_lab.grading.programs.verify_program import ProgramJudge

        if name != "lab9.streaming":
            raise KeyError(name)
        rules = (right_layers, no_hazard, each_step_uploads_once, uploads_overlap, parity)
        return ProgramJudge(rules, "All streams give the resident run's bytes.")


JUDGES = _Judges(
    {
        "lab9.double": Judge(lambda inputs: 2 * inputs["n"], "All numbers are right."),
        "lab9.triple": Judge(lambda inputs: 3 * inputs["n"], "All numbers are right."),
        "lab9.fragile": Judge(lambda inputs: "fine", "Fine.", also=_break, of_a_call=False, compare=lambda *_: None),
        "lab9.choice": Judge(lambda inputs: "B", "That is it.", of_a_call=False),
    }
)
