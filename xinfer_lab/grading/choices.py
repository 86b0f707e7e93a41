"""Predictions, graded for having been made, and choices, graded for being right: the same in every lab."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xinfer_lab.grading.values import Value, shown
from xinfer_lab.grading.verify_values import Difference, Judge

__all__ = ["PREDICTION", "choice", "one_of"]


def one_of(choices: Iterable[str], got: Value) -> Value:
    """The choice that ``got`` means, in capitals or not; ``got`` itself if it is none."""
    typed = got.strip().casefold() if isinstance(got, str) else None
    return next((choice for choice in choices if choice.casefold() == typed), got)


def _made(expected: Value, got: Value, noun: str) -> Difference | None:
    """Whether a prediction was made: a number in the range, or one of the choices. Which one does not matter."""
    choices = expected.get("choices")
    if choices is not None:
        if isinstance(got, str) and one_of(choices, got) in choices:
            return None
        wanted = "one of " + ", ".join(f'"{choice}"' for choice in choices)
    else:
        if type(got) in (int, float) and expected["low"] <= got <= expected["high"]:
            return None
        wanted = f"a number from {expected['low']} to {expected['high']}"
    if got is None or got is Ellipsis:
        return Difference("", wanted, shown(got), "Type your prediction first; any guess earns the point.")
    hint = "Type one of the letters, in quotes." if choices is not None else "Type a number in that range."
    if choices is None and isinstance(got, str):
        hint = "Type the number alone, without quotes and without a unit or %."
    return Difference(
        "", wanted, shown(got), "This cannot be noted as your prediction; any guess earns the point.", hint
    )


PREDICTION = Judge(
    truth=dict,
    passed="Your prediction is noted. Run on and compare.",
    noun="prediction",
    compare=_made,
    of_a_call=False,
)
"""Of a piece whose cases have ``choices``, or ``low`` and ``high``."""


def choice(letter: str, why_not: Mapping[str, str]) -> Judge:
    """``letter`` is the reason; ``why_not`` says of every other letter why it is not."""

    def compare(expected: Value, got: Value, noun: str) -> Difference | None:
        got = one_of((expected, *why_not), got)
        if got == expected and type(got) is str:
            return None
        if not (isinstance(got, str) and got in {expected, *why_not}):
            wanted = "one of " + ", ".join(f'"{choice}"' for choice in sorted({expected, *why_not}))
            hint = "Type one of the letters, in quotes."
            return Difference("", wanted, shown(got), "Choose one of the letters.", hint)
        return Difference("", "another choice", f'"{got}"', "That is not the reason.", why_not[got])

    return Judge(
        truth=lambda inputs: letter, passed="That is the reason.", noun="choice", compare=compare, of_a_call=False
    )
