"""Lab 5: how a page table is played: call by call, with a look at it after each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from xinfer_lab.grading.denial import DeniedModule
from xinfer_lab.grading.guard import AnswerTimeout
from xinfer_lab.grading.numbers import plain_scalar, whole
from xinfer_lab.grading.piece import Observed
from xinfer_lab.grading.raised import origin_of
from xinfer_lab.grading.student_line import Line, methods_of, raised_at
from xinfer_lab.grading.values import Value
from xinfer_lab.labs.lab5.numbered import anew
from xinfer_lab.paging.errors import PageError

__all__ = ["play_table"]


def play_table(answer: Any, inputs: Mapping[str, Value], observed: Observed) -> object:
    """For each call in order: its result, what the table says afterwards of the pages and frames to ``look`` at,
    and the line of the method that was called. Ends where the table cannot say it.

    ``others``: a table was asked the same before, and another one is asked in between, which is some calls ahead.
    """
    calls, lines = inputs["calls"], methods_of(answer)
    beside = _others(answer, inputs) if inputs["others"] else iter(())
    next(beside, None)
    table = answer(inputs["pages"], inputs["frames"])
    steps: list[dict[str, object]] = []
    for name, *arguments in calls:
        next(beside, None)
        line, look = lines.get(name), dict[str, str]()
        try:
            returned = getattr(table, name)(*map(anew, arguments))
            did = f"returned {_number(returned)}" if name == "unbind" else "done"
        except Exception as error:
            did = _broke(error)
            line = line if did == "PageError" else raised_at(error.__traceback__) or line
        try:
            look = _look(table, inputs["look"])
        except Exception as error:
            did, line = _broke(error), raised_at(error.__traceback__) or line
        own = {"line": _shown(line), "free_line": _shown(lines.get("free_frame"))}
        steps.append({"did": did, "look": look, **own})
        if not look:
            break
    return steps


AHEAD = 3
"""Calls that the other table is ahead."""


def _others(answer: Any, inputs: Mapping[str, Value]) -> Iterator[None]:
    """Another table that was asked everything, then a call of a third at each step."""
    for ahead in (len(inputs["calls"]), AHEAD):
        table = answer(inputs["pages"], inputs["frames"])
        calls = iter(inputs["calls"])
        for name, *arguments in islice(calls, ahead):
            _ask(table, name, arguments)
    yield
    for name, *arguments in calls:
        _ask(table, name, arguments)
        yield


def _ask(table: Any, name: str, arguments: list[Value]) -> None:
    # What goes wrong here shows in the table that is looked at, if it does at all.
    with suppress(Exception):
        getattr(table, name)(*map(anew, arguments))


def _shown(line: Line | None) -> str | None:
    return str(line) if line else None


def _broke(error: Exception) -> str:
    if isinstance(error, AnswerTimeout | DeniedModule | NotImplementedError):
        raise error
    if isinstance(error, PageError) and origin_of(error).refuses:
        return "PageError"
    return f"{type(error).__name__}: {error}"[:200]


def _look(table: Any, look: Mapping[str, Value]) -> dict[str, str]:
    said = {f"page {page}": _page(table, page) for page in look["pages"]}
    said |= {f"frame {frame}": f"page_in {_number(table.page_in(frame))}" for frame in look["frames"]}
    return said | {"free_frame()": _number(table.free_frame())}


def _page(table: Any, page: int) -> str:
    state, dirty = table.state(page), plain_scalar(table.is_dirty(page))
    held = f"frame {_number(table.frame_of(page))}, pins {_number(table.pins(page))}"
    written = bool(dirty) if dirty is not None else table.is_dirty(page)
    return f"{_text(state)}, {held}, dirty {written!r}"[:160]


def _number(value: object) -> str:
    """A number of whichever library as Python writes it; anything else as it is."""
    number = whole(value)
    return f"{value!r}"[:80] if number is None else f"{number}"


def _text(value: object) -> str:
    """A text as its letters, also where it is a member of an enum."""
    return str.__str__(value) if isinstance(value, str) else f"{value!r}"[:80]
