"""Judge recorded data on the trusted side: data is untrusted input, and the truth is computed here, from the cases
alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from xinfer_lab.grading.envelope import read_line, read_outcomes, read_raised
from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.report import Misconception, Report
from xinfer_lab.grading.values import BadData, Opaque, Value, decode, shown

__all__ = ["Difference", "Judge", "Outcome", "Refuses", "WrongModel", "equal", "first_difference", "verify_values"]

Inputs = Mapping[str, Value]
NOT_A_FUNCTION = re.compile(r"'\w+' object is not callable")
"""What Python says where a value is called."""


@dataclass(frozen=True, slots=True)
class Refuses:
    """The truth about a case that must be refused: an exception of class ``type`` (or below it), for ``reason``.

    Where ``args`` is given, the exception must carry exactly these arguments.
    """

    type: str
    reason: str
    args: tuple[Value, ...] | None = None


@dataclass(frozen=True, slots=True)
class WrongModel:
    """A known wrong idea: its name, and the sentence that corrects it.

    ``model(inputs)`` returns what that idea would answer (a value, or `Refuses`). An idea that shows in how an answer
    went about it, or in all its answers together, has a ``pattern`` instead: whether the cases with their outcomes
    look so.
    """

    name: str
    explanation: str
    model: Callable[[Inputs], Value] | None = None
    pattern: Callable[[Sequence[tuple[Case, Outcome]]], bool] | None = None

    @property
    def misconception(self) -> Misconception:
        """What a student is told of it."""
        return Misconception(self.name, self.explanation)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an answer did on one case, decoded: it returned ``value``, or raised (``raised`` is the class, with
    ``bases``)."""

    value: Value = None
    raised: str | None = None
    bases: tuple[str, ...] = ()
    message: str = ""
    args: tuple[Value, ...] = ()
    observed: Mapping[str, Value] = field(default_factory=dict)
    line: str | None = None

    def __str__(self) -> str:
        return f"{self.raised}: {self.message}"[:400] if self.raised else shown(self.value)


@dataclass(frozen=True, slots=True)
class Difference:
    """Where an answer and the truth part: ``path`` inside the value (empty for the whole of it), and both sides for
    people. ``line`` is the student's, where the recording says more of it than which line returned last."""

    path: str
    expected: str
    got: str
    headline: str
    hint: str | None = None
    line: str | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """What is right for one piece.

    ``truth(inputs)`` is the right value, or `Refuses`. ``call`` writes a case as the call that a student would make.
    ``also(inputs, outcome)`` may find fault with how a right value came about. ``compare`` replaces equality of values.
    ``of_a_call`` is false where the answer is a value that was typed in, not a function. ``tried`` says, for
    a wrong outcome, what came of trying it.
    """

    truth: Callable[[Inputs], Value]
    passed: str
    noun: str = "value"
    call: Callable[[Case], str] = lambda case: case.label
    wrong: tuple[WrongModel, ...] = ()
    also: Callable[[Inputs, Outcome], Difference | None] | None = None
    compare: Callable[[Value, Value, str], Difference | None] | None = None
    of_a_call: bool = True
    tried: Callable[[Inputs, Outcome], str] | None = None


def verify_values(piece: str, judge: Judge, cases: Sequence[Case], data: object) -> Report:
    """The report on ``data`` for ``cases``: the first case whose outcome is not right, and the known idea that
    explains all of them."""
    try:
        listed, defined = read_outcomes(piece, cases, data)
        outcomes = [_outcome(item) for item in listed]
    except BadData as error:
        return Report(piece, False, f"The recording of this answer cannot be read: {error}.")
    wrong: list[tuple[Case, Outcome, Difference]] = []
    for case, outcome in zip(cases, outcomes, strict=False):
        difference = _judge(judge, case, outcome, defined)
        if difference is not None:
            wrong.append((case, outcome, difference))
    if wrong:
        case, outcome, difference = wrong[0]
        unfilled = outcome.raised == "NotImplementedError"
        place = None if unfilled else judge.call(case) + (f", at {difference.path}" if difference.path else "")
        return Report(
            piece,
            False,
            difference.headline,
            where=place,
            expected=difference.expected,
            got=difference.got,
            line=difference.line or outcome.line or defined,
            misconception=_misconception(judge, list(zip(cases, outcomes, strict=False))),
            hint=judge.tried(case.inputs, outcome) if judge.tried and outcome.raised is None else difference.hint,
            checked=len(outcomes),
        )
    if not cases or len(outcomes) < len(cases):
        return Report(
            piece, False, f"{len(outcomes)} of {len(cases)} cases were recorded, so there is nothing to pass."
        )
    return Report(piece, True, judge.passed, checked=len(cases))


def _judge(judge: Judge, case: Case, outcome: Outcome, defined: str | None) -> Difference | None:
    truth = judge.truth(case.inputs)
    if outcome.raised in ("AnswerTimeout", "DeniedModule", "NotImplementedError"):
        return _did_not_answer(truth, outcome)
    if isinstance(truth, Refuses):
        return _judge_refusal(truth, outcome)
    if outcome.raised == "TypeError" and judge.of_a_call and NOT_A_FUNCTION.fullmatch(outcome.message) and not defined:
        kind = outcome.message.split("'")[1]
        hint = "Pass the function itself, without calling it: its name alone, with no parentheses behind it."
        return Difference("", "a function", f"a value of type {kind}", "This is not a function.", hint)
    if outcome.raised:
        headline = f"It raised {outcome.raised} where a {judge.noun} was asked for."
        return Difference("", shown(truth), str(outcome), headline)
    if judge.of_a_call and outcome.value is None and truth is not None:
        hint = "Does every path through the function end in `return`?"
        return Difference("", shown(truth), "None", f"It returned nothing; a {judge.noun} was asked for.", hint)
    difference = (judge.compare or equal)(truth, outcome.value, judge.noun)
    if difference is None and judge.also is not None:
        difference = judge.also(case.inputs, outcome)
    return difference


def _did_not_answer(truth: Value, outcome: Outcome) -> Difference:
    expected = f"{truth.type}, because {truth.reason}" if isinstance(truth, Refuses) else shown(truth)
    match outcome.raised:
        case "NotImplementedError":
            return Difference(
                "", "", "", "It is not filled in yet.", "Write your code in place of the line that raises."
            )
        case "AnswerTimeout":
            hint = "Look for a loop whose end is never reached."
            return Difference("", expected, outcome.message, "It did not come to an end.", hint)
    hint = "Write this part with Python alone; the module is closed while the piece is graded."
    return Difference("", "", str(outcome), "It uses a module that holds the answer.", hint)


def _judge_refusal(truth: Refuses, outcome: Outcome) -> Difference | None:
    expected = f"{truth.type}, because {truth.reason}"
    if outcome.raised is None:
        return Difference("", expected, shown(outcome.value), "It gave an answer where it has to refuse.")
    if truth.type not in outcome.bases:
        headline = f"It broke with {outcome.raised} where it has to refuse with {truth.type}."
        hint = (
            f"assert is for mistakes of the program itself, and python -O leaves it out: raise {truth.type}(...)."
            if outcome.raised == "AssertionError"
            else None
        )
        return Difference("", expected, str(outcome), headline, hint)
    if truth.args is not None and not _same_list(list(truth.args), list(outcome.args)):
        wanted = f"{truth.type}({', '.join(shown(item) for item in truth.args)}), because {truth.reason}"
        got = f"{outcome.raised}({', '.join(shown(item) for item in outcome.args)})"
        return Difference("", wanted, got, "It refuses, but with other figures.")
    return None


def _same_list(expected: list[Value], got: list[Value]) -> bool:
    return first_difference(expected, got) is None


def equal(expected: Value, got: Value, noun: str) -> Difference | None:
    """How two decoded values part, None where they are equal: the usual ``compare`` of a judge."""
    found = first_difference(expected, got)
    if found is None:
        return None
    path, right, given, why = found
    hint, got = None, _side(_alike(right, given))
    if type(right) is int and type(given) is int:
        got += f" ({abs(given - right):,} too {'many' if given > right else 'few'})"
    elif type(right) is int and type(given) is float:
        hint = "A whole number was asked for: divide with //, not with /."
    headline = f"The {noun} has the wrong form: {why}." if why else f"This is not the right {noun}."
    return Difference(path, _side(right), got, headline, hint)


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()


def _alike(expected: Value, got: Value) -> Value:
    """``got`` with tuples where ``expected`` has them, as it was before it was recorded as lists."""
    if isinstance(expected, dict) and isinstance(got, dict):
        return {key: _alike(expected.get(key), item) for key, item in got.items()}
    if isinstance(expected, list | tuple) and isinstance(got, list):
        like = [*expected, *[expected[-1] if expected else None] * len(got)]
        return type(expected)(_alike(one, item) for one, item in zip(like, got, strict=False))
    return got


def _side(value: Value) -> str:
    return "nothing here" if value is MISSING else shown(value)


def first_difference(expected: Value, got: Value, path: str = "") -> tuple[str, Value, Value, str] | None:
    """The first place where two decoded values part: ``(path, expected, got, why)``; None where they are equal.

    Types count: ``True`` is not 1, ``2.0`` is not 2, and NaN equals nothing. A recording has lists alone, so a tuple
    of the truth equals a list. ``why`` is '' where only the values differ.
    """
    if isinstance(expected, tuple) and isinstance(got, list):
        expected = list(expected)
    if type(expected) is not type(got):
        return path, expected, got, f"{_type_name(expected)} was asked for, this is {_type_name(got)}"
    if isinstance(expected, dict):
        return _dict_difference(expected, got, path)
    if isinstance(expected, list):
        for index in range(max(len(expected), len(got))):
            here = f"{path}[{index}]"
            if index >= len(got):
                return here, expected[index], MISSING, ""
            if index >= len(expected):
                return here, MISSING, got[index], ""
            found = first_difference(expected[index], got[index], here)
            if found:
                return found
        return None
    return None if expected == got else (path, expected, got, "")


def _dict_difference(
    expected: dict[Value, Value], got: dict[Value, Value], path: str
) -> tuple[str, Value, Value, str] | None:
    keys = {(type(key), key): key for key in expected}
    for kind_and_key, key in keys.items():
        here = f"{path}[{key!r}]"
        if kind_and_key not in {(type(other), other) for other in got}:
            return here, expected[key], MISSING, ""
        found = first_difference(expected[key], got[key], here)
        if found:
            return found
    for key in got:
        if (type(key), key) not in keys:
            return (
                f"{path}[{str(key)[:80]!r}]" if isinstance(key, str) else f"{path}[{shown(key, 80)}]",
                MISSING,
                got[key],
                "",
            )
    return None


def _type_name(value: Value) -> str:
    match value:
        case None:
            return "None"
        case Opaque():
            return f"a {value.type.removeprefix('builtins.')}"
        case int() if not isinstance(value, bool):
            return "an int"
    return f"a {type(value).__name__}"


def _misconception(judge: Judge, outcomes: Sequence[tuple[Case, Outcome]]) -> Misconception | None:
    """The known wrong idea, or two together, that gives exactly what the answer gave, in the cases it got right
    too."""
    for idea in judge.wrong:
        if idea.pattern is not None and idea.pattern(outcomes):
            return idea.misconception
        if idea.model and all(_explains(judge, idea.model, case, outcome) for case, outcome in outcomes):
            return idea.misconception
    modelled = [(idea, idea.model) for idea in judge.wrong if idea.model is not None]
    for (first, one), (second, two) in combinations(modelled, 2):
        if all(_explain_together(judge, one, two, case, outcome) for case, outcome in outcomes):
            return Misconception(f"{first.name}; and {second.name}", f"{first.explanation} {second.explanation}")
    return None


def _explains(judge: Judge, model: Callable[[Inputs], Value], case: Case, outcome: Outcome) -> bool:
    predicted = model(case.inputs)
    if isinstance(predicted, Refuses):
        if outcome.raised is None or predicted.type not in outcome.bases:
            return False
        return predicted.args is None or _same_list(list(predicted.args), list(outcome.args))
    return outcome.raised is None and (judge.compare or equal)(predicted, outcome.value, judge.noun) is None


def _explain_together(
    judge: Judge,
    first: Callable[[Inputs], Value],
    second: Callable[[Inputs], Value],
    case: Case,
    outcome: Outcome,
) -> bool:
    truth, one, two = judge.truth(case.inputs), first(case.inputs), second(case.inputs)
    numbers = (truth, one, two, outcome.value)
    if outcome.raised or not all(type(number) is int for number in numbers):
        return False
    # Each is wrong by so much more or less, or by a factor.
    return bool(one + two - truth == outcome.value or one * two == truth * outcome.value)


def _outcome(item: Mapping[str, Any]) -> Outcome:
    observed = decode(item.get("observed", {"$": "dict", "items": []}))
    if not isinstance(observed, dict):
        raise BadData("what was observed is not a dict")
    line = read_line(item.get("line"))
    if set(item) <= {"returned", "observed", "line"} and "returned" in item:
        return Outcome(decode(item["returned"]), observed=observed, line=line)
    if not set(item) <= {"raised", "observed", "line"} or "raised" not in item:
        raise BadData("an outcome has neither a returned value nor an exception")
    raised = read_raised(item["raised"])
    return Outcome(None, raised.type, raised.bases, raised.message, raised.args, observed, line)
