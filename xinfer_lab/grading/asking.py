"""The usual ways of asking an answer, and of drawing a case: what the pieces of every lab share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from xinfer_lab.grading.piece import Case, Observed
from xinfer_lab.grading.values import Value

__all__ = ["arguments", "itself", "once"]

_LABELS = {"choices": "your choice", "rows": "your table", "derived": "your figures"}


def itself(answer: Any, inputs: Mapping[str, Value], observed: Observed) -> object:
    """The answer as it was typed in: for choices and predictions."""
    return answer


def arguments(*names: str) -> Callable[[Any, Mapping[str, Value], Observed], object]:
    """Calls the answer with the case's inputs ``names``, in this order."""

    def ask(answer: Any, inputs: Mapping[str, Value], observed: Observed) -> object:
        return answer(*(inputs[name] for name in names))

    return ask


def once(label: str = "", /, **inputs: Value) -> Callable[[Random], list[Case]]:
    """One case with ``inputs``, the same for every seed. Without a ``label`` the inputs say what is asked for."""
    told = label or next((_LABELS[name] for name in inputs if name in _LABELS), "your prediction")
    return lambda random: [Case(told, inputs)]
