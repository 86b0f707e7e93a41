"""Judges recorded data on the trusted side: the data is untrusted, the truth is computed from the cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from xinfer_lab.grading.differences import Difference, equal, first_difference
from xinfer_lab.grading.envelope import Raised, read_line, read_outcomes, read_raised
from xinfer_lab.grading.piece import CHANGED, Case
from xinfer_lab.grading.report import TOO_LONG, Misconception, Report
from xinfer_lab.grading.values import BadData, Value, decode, shown

__all__ = [
    "Difference",
    "Judge",
    "Outcome",
    "Refuses",
    "WrongModel",
    "equal",
    "explaining",
    "first_difference",
    "verify_values",
]

Inputs = Mapping[str, Value]
NOT_A_FUNCTION = re.compile(r"'(\w+)' object is not callable")
"""What Python says where a value is called."""


@dataclass(frozen=True, slots=True)
class Refuses:
    """The truth about a case that must be refused: an exception of class ``type`` (or below it), for ``reason``, by a
    `raise` of the answer's own.

    ``also``: classes that count whoever raises them, since a library says the same thing by them (json's own errors,
    where JSON is asked for). Where ``args`` is given, the exception must carry exactly these arguments.
    """

    type: str
    reason: str
    args: tuple[Value, ...] | None = None
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WrongModel:
    """A known wrong idea: its name, and the sentence that corrects it. ``rule``: it breaks this rule of the text, and
    no other (see `xinfer_lab.grading.ledger`).

    ``model(inputs)`` returns what that idea would answer (a value, or `Refuses`). An idea that shows in how an answer
    went about it, or in all its answers together, has a ``pattern`` instead: whether the cases with their outcomes
    look so.
    """

    name: str
    explanation: str
    model: Callable[[Inputs], Value] | None = None
    pattern: Callable[[Sequence[tuple[Case, Outcome]]], bool] | None = None
    rule: str = ""

    @property
    def misconception(self) -> Misconception:
        """What a student is told of it."""
        return Misconception(self.name, self.explanation)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an answer did on one case, decoded: it returned ``value``, or raised ``broke``."""

    value: Value = None
    broke: Raised | None = None
    observed: Mapping[str, Value] = field(default_factory=dict)
    line: str | None = None

    @property
    def raised(self) -> str | None:
        """The class of what it raised, or None."""
        return self.broke.type if self.broke else None

    @property
    def message(self) -> str:
        """The message of what it raised, or ''."""
        return self.broke.message if self.broke else ""

    def refused_as(self, truth: Refuses) -> bool:
        """Whether it raised what ``truth`` asks for, by a `raise` of its own or as ``truth.also`` allows."""
        if self.broke is None or truth.type not in self.broke.bases:
            return False
        return self.broke.refuses or bool({*self.broke.bases} & {*truth.also})

    def __str__(self) -> str:
        return f"{self.broke.type}: {self.broke.message}"[:400] if self.broke else shown(self.value)


@dataclass(frozen=True, slots=True)
class Judge:
    """What is right for one piece.

    ``truth(inputs)`` is the right value, or `Refuses`. ``call`` writes a case as the call that a student would make.
    ``also(inputs, outcome)`` may find fault with how a right value came about. ``compare`` replaces equality of values.
    ``of_a_call`` is false where the answer is a value that was typed in, not a function. ``tried`` says, for
    a wrong outcome, what happened when it was tried. ``keeps_inputs``: the answer must leave its arguments as they are.
    ``besides`` names rules of the text that none of ``wrong`` stands for: those that ``also`` looks at, say.
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
    keeps_inputs: bool = True
    besides: tuple[str, ...] = ()

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that it looks at."""
        return tuple(dict.fromkeys([*(idea.rule for idea in self.wrong if idea.rule), *self.besides]))


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


def explaining(piece: str, judge: Judge, cases: Sequence[Case], data: object) -> set[str]:
    """The rules whose breaking alone explains all of a recording: see `xinfer_lab.grading.ledger`."""
    listed, _ = read_outcomes(piece, cases, data)
    outcomes = list(zip(cases, map(_outcome, listed), strict=False))
    return {idea.rule for idea in judge.wrong if idea.rule and _explains_all(judge, idea, outcomes)}


def _judge(judge: Judge, case: Case, outcome: Outcome, defined: str | None) -> Difference | None:
    truth = judge.truth(case.inputs)
    if outcome.broke and outcome.broke.unanswered:
        return _did_not_answer(truth, outcome)
    if isinstance(truth, Refuses):
        return _judge_refusal(truth, outcome)
    broke = outcome.broke
    if broke and broke.type == "TypeError" and judge.of_a_call and not defined:
        called = NOT_A_FUNCTION.fullmatch(broke.message)
    else:
        called = None
    if called:
        kind = called[1]
        hint = "Pass the function itself, without calling it: its name alone, with no parentheses behind it."
        return Difference("", "a function", f"a value of type {kind}", "This is not a function.", hint)
    if outcome.broke:
        headline = f"It raised {outcome.raised} where a {judge.noun} was asked for."
        return Difference("", shown(truth), f"{outcome} (raised by {outcome.broke.raiser})", headline)
    if judge.of_a_call and outcome.value is None and truth is not None:
        hint = "Does every path through the function end in `return`?"
        return Difference("", shown(truth), "None", f"It returned nothing; a {judge.noun} was asked for.", hint)
    difference = (judge.compare or equal)(truth, outcome.value, judge.noun)
    if difference is None and judge.also is not None:
        difference = judge.also(case.inputs, outcome)
    return difference or _kept_inputs(judge, outcome)


def _kept_inputs(judge: Judge, outcome: Outcome) -> Difference | None:
    changed = outcome.observed.get(CHANGED)
    if not judge.keeps_inputs or not isinstance(changed, list) or not changed:
        return None
    names = ", ".join(str(name)[:40] for name in changed[:5])
    hint = "Whoever calls goes on using what was passed in: work on a copy, as dict(config) or list(places)."
    return Difference("", f"{names} as before the call", "something else in there", f"It overwrites {names}.", hint)


def _did_not_answer(truth: Value, outcome: Outcome) -> Difference:
    expected = f"{truth.type}, because {truth.reason}" if isinstance(truth, Refuses) else shown(truth)
    match outcome.broke.unanswered if outcome.broke else "":
        case "NotImplementedError":
            return Difference(
                "", "", "", "It is not filled in yet.", "Write your code in place of the line that raises."
            )
        case "AnswerTimeout":
            return Difference("", expected, outcome.broke.message if outcome.broke else "", *TOO_LONG)
        case "NotAllowed":
            return Difference("", "", str(outcome), "It uses a module that no answer may use.", None)
    hint = "Write this part with Python alone; the module is closed while the piece is graded."
    return Difference("", "", str(outcome), "It uses a module that holds the answer.", hint)


def _judge_refusal(truth: Refuses, outcome: Outcome) -> Difference | None:
    expected = f"{truth.type}, because {truth.reason}"
    if outcome.broke is None:
        return Difference("", expected, shown(outcome.value), "It gave an answer where it has to refuse.")
    broke = outcome.broke
    if truth.type not in broke.bases:
        headline = f"It broke with {outcome.raised} where it has to refuse with {truth.type}."
        hint = (
            f"assert is for mistakes of the program itself, and python -O leaves it out: raise {truth.type}(...)."
            if outcome.raised == "AssertionError"
            else None
        )
        return Difference("", expected, f"{outcome} (raised by {broke.raiser})", headline, hint)
    if not outcome.refused_as(truth):
        headline = f"It broke with {outcome.raised}; that is no refusal."
        hint = f"{broke.raiser} raised this, for another reason. Test for it, and refuse: raise {truth.type}(...)."
        hint = hint[0].upper() + hint[1:]
        return Difference("", expected, f"{outcome} (raised by {broke.raiser})", headline, hint)
    if truth.args is not None and not _same_list(list(truth.args), list(broke.args)):
        wanted = f"{truth.type}({', '.join(shown(item) for item in truth.args)}), because {truth.reason}"
        got = f"{outcome.raised}({', '.join(shown(item) for item in broke.args)})"
        return Difference("", wanted, got, "It refuses, but with other figures.")
    return None


def _same_list(expected: list[Value], got: list[Value]) -> bool:
    return first_difference(expected, got) is None


def _misconception(judge: Judge, outcomes: Sequence[tuple[Case, Outcome]]) -> Misconception | None:
    """The known wrong idea, or two together, that gives exactly what the answer gave, in the cases it got right
    too."""
    for idea in judge.wrong:
        if _explains_all(judge, idea, outcomes):
            return idea.misconception
    modelled = [(idea, idea.model) for idea in judge.wrong if idea.model is not None]
    for (first, one), (second, two) in combinations(modelled, 2):
        if all(_explain_together(judge, one, two, case, outcome) for case, outcome in outcomes):
            return Misconception(f"{first.name}; and {second.name}", f"{first.explanation} {second.explanation}")
    return None


def _explains_all(judge: Judge, idea: WrongModel, outcomes: Sequence[tuple[Case, Outcome]]) -> bool:
    if idea.pattern is not None and idea.pattern(outcomes):
        return True
    model = idea.model
    return model is not None and all(_explains(judge, model, case, outcome) for case, outcome in outcomes)


def _explains(judge: Judge, model: Callable[[Inputs], Value], case: Case, outcome: Outcome) -> bool:
    predicted = model(case.inputs)
    if isinstance(predicted, Refuses):
        if outcome.broke is None or not outcome.refused_as(predicted):
            return False
        return predicted.args is None or _same_list(list(predicted.args), list(outcome.broke.args))
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
    return Outcome(None, read_raised(item["raised"], item.get("line")), observed, line)
