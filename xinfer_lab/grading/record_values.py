"""Runs a student's answer on drawn cases and writes down what it did. Knows nothing of what is right."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import asdict
from typing import Any, Protocol

from xinfer_lab.grading.denial import denied_reference, deny
from xinfer_lab.grading.guard import AnswerTimeout, time_limit
from xinfer_lab.grading.piece import CHANGED, Case, Observed
from xinfer_lab.grading.raised import origin_of
from xinfer_lab.grading.rooms import ALWAYS_DENIED, allowed_in
from xinfer_lab.grading.student_line import Line, defined_at, raised_at, watch_return
from xinfer_lab.grading.values import Value, decode, encode

__all__ = ["SCHEMA", "Askable", "Recordable", "notes_changes", "record_values", "recording"]

SCHEMA = 1
"""Version of the recorded data's layout."""


class Recordable(Protocol):
    """What recording needs to know of a piece."""

    @property
    def name(self) -> str:
        """Lab and piece."""

    @property
    def denied_modules(self) -> tuple[str, ...]:
        """Modules that hold the answer."""

    @property
    def cpu_seconds(self) -> float:
        """Processor time that one case may take."""


class Askable(Recordable, Protocol):
    """A piece whose answer is asked for values."""

    @property
    def ask(self) -> Callable[[Any, Mapping[str, Value], Observed], object]:
        """Calls the answer on one case's inputs."""


def record_values(question: Askable, answer: object, cases: Sequence[Case]) -> dict[str, Any]:
    """`recording` of what ``answer`` returned on each case: ``returned``, at which of its lines, and ``observed``
    besides."""

    def ask(answer: object, inputs: Mapping[str, Value], note: dict[str, Any]) -> None:
        observed: dict[str, Any] = {}
        with watch_return(answer) as watch:
            try:
                with notes_changes(observed, **inputs):
                    note["returned"] = encode(question.ask(answer, inputs, observed))
            finally:
                note["observed"] = encode(observed)
        note["line"] = _line(watch.line)

    return recording(question, answer, cases, ask)


@contextmanager
def notes_changes(observed: Observed, **given: object) -> Iterator[None]:
    """Adds to ``observed[CHANGED]`` the names of those of ``given`` that the block overwrites.

    An answer is to leave its arguments as they are. For an ``ask`` that hands out more than its inputs.
    """
    before = {name: encode(value) for name, value in given.items()}
    try:
        yield
    finally:
        changed = [name for name, value in given.items() if encode(value) != before[name]]
        if changed:
            observed[CHANGED] = [*observed.get(CHANGED, ()), *changed]


def recording(
    piece: Recordable,
    answer: object,
    cases: Sequence[Case],
    run: Callable[[object, Mapping[str, Value], dict[str, Any]], None],
) -> dict[str, Any]:
    """``{"schema", "piece", "defined", "outcomes"}``: for each case what ``run(answer, inputs, note)`` put into
    ``note``, what was raised, and the student's line where it was raised.

    After the first time-out the remaining cases are not run; their outcomes are missing. Nothing is written to stderr.
    """
    denied = (*piece.denied_modules, *ALWAYS_DENIED)
    outcomes: list[dict[str, Any]] = []
    allowed = allowed_in(piece.name)
    reference = denied_reference(answer, denied, allowed)
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()), deny(denied, allowed):
        warnings.simplefilter("ignore")
        for case in cases:
            if reference is not None:
                outcomes.append(_raised(reference, answer))
                break
            outcomes.append(_run_case(piece, answer, case, run))
            if outcomes[-1].get("raised", {}).get("type") == AnswerTimeout.__name__:
                break
    return {"schema": SCHEMA, "piece": piece.name, "defined": _line(defined_at(answer)), "outcomes": outcomes}


def _run_case(
    piece: Recordable, answer: object, case: Case, run: Callable[[object, Mapping[str, Value], dict[str, Any]], None]
) -> dict[str, Any]:
    # The answer may change its inputs; the next reader must not see that.
    own = decode(encode(dict(case.inputs)))
    note: dict[str, Any] = {"line": None}
    try:
        with time_limit(piece.cpu_seconds):
            run(answer, own, note)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return {**note, **_raised(error, answer)}
    return note


def _raised(error: BaseException, answer: object) -> dict[str, Any]:
    try:
        message = str(error)[:2000]
    except Exception as broken:
        message = f"<its message failed with {type(broken).__name__}>"
    bases = [kind.__name__ for kind in type(error).__mro__ if kind not in (object, BaseException)]
    raised = {"type": type(error).__name__, "bases": bases[:20], "message": message, "args": encode(list(error.args))}
    return {"raised": raised | asdict(origin_of(error)), "line": _line(raised_at(error.__traceback__))}


def _line(line: Line | None) -> dict[str, Any] | None:
    return None if line is None else {"number": line.number, "text": line.text}
