"""Lab 5: objects of one class that keep their books in the class, a global or a default argument."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify_values import Difference, Outcome, WrongModel

__all__ = ["shared_books"]


def shared_books(what: str, truth: Callable[..., Value], compare: Callable[..., Difference | None]) -> WrongModel:
    """The idea that shows where an object is not alone, and nowhere else."""

    def only_beside_others(outcomes: Sequence[tuple[Case, Outcome]]) -> bool:
        wrong = [
            bool(case.inputs["others"])
            for case, outcome in outcomes
            if outcome.raised or compare(truth(case.inputs), outcome.value, "") is not None
        ]
        return bool(wrong) and all(wrong)

    return WrongModel(
        f"Two {what} share their books",
        "Alone your class is right; here a second object of it is at work, and one was there before. What an object "
        "remembers belongs on self, set in __init__: not in the class, a global or a default argument.",
        pattern=only_beside_others,
        rule="shares_nothing",
    )
