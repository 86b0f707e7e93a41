"""Finds the line of a student's own code that gave an answer, or broke."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from xinfer_lab.grading.raised import is_own

__all__ = ["Line", "Watch", "defined_at", "methods_of", "raised_at", "watch_return"]

PACKAGE = str(Path(__file__).parents[1])
STANDARD = str(Path(contextlib.__file__).parent)
"""Where Python's own library is: no line in there is a student's."""


@dataclass(frozen=True, slots=True)
class Line:
    """Line ``number`` (from 1) of the cell or file that a student wrote; ``text`` is the line without its
    indentation."""

    number: int
    text: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.text}"


@dataclass(slots=True)
class Watch:
    """Where one of the watched functions returned last; ``line`` is None before it did."""

    line: Line | None = None
    codes: frozenset[CodeType] = field(default=frozenset(), repr=False)


def _line(filename: str, number: int) -> Line:
    return Line(number, linecache.getline(filename, number).strip()[:200])


def _code(answer: object) -> CodeType | None:
    if isinstance(answer, Mapping):
        answer = next(iter(answer.values()), None)
    if isinstance(answer, type):
        answer = next((member for member in vars(answer).values() if isinstance(member, FunctionType)), None)
    answer = getattr(answer, "func", answer)  # functools.partial
    try:
        answer = inspect.unwrap(answer)  # type: ignore[arg-type]
    except ValueError:
        return None
    called = vars(type(answer)).get("__call__")
    code = getattr(answer, "__code__", None) or getattr(called, "__code__", None)
    return code if isinstance(code, CodeType) else None


def defined_at(answer: object) -> Line | None:
    """The first line of the function ``answer``, or of a class's first method; None for what was not written in
    Python, for this package's own, and for several parts, of which none is meant more than another."""
    code = None if isinstance(answer, Mapping) else _code(answer)
    own = code is not None and not code.co_filename.startswith(PACKAGE)
    return _line(code.co_filename, code.co_firstlineno) if code and own else None


def methods_of(answer: object) -> dict[str, Line]:
    """Where each function of ``answer`` begins, by name: a function, a class's methods, or those of a mapping's
    values."""
    parts = list(answer.values()) if isinstance(answer, Mapping) else [answer]
    found: dict[str, Line] = {}
    for part in parts:
        members = [m for m in vars(part).values() if isinstance(m, FunctionType)] if isinstance(part, type) else [part]
        for member in members:
            code = _code(member)
            if code is not None:
                found.setdefault(code.co_name[:100], _line(code.co_filename, code.co_firstlineno))
    return dict(list(found.items())[:100])


def raised_at(traceback: TracebackType | None) -> Line | None:
    """The innermost line of ``traceback`` that a student wrote, in whichever cell; None where there is none."""
    found = None
    while traceback is not None:
        if is_own(traceback.tb_frame.f_code.co_filename):
            found = (traceback.tb_frame.f_code.co_filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return _line(*found) if found else None


@contextmanager
def watch_return(answer: object) -> Iterator[Watch]:
    """While the block runs, notes the line at which ``answer`` returns, or a method of it if it is a class.

    Does nothing where a debugger is already tracing.
    """
    members = (
        [m for m in vars(answer).values() if isinstance(m, FunctionType)] if isinstance(answer, type) else [answer]
    )
    seen = Watch(codes=frozenset(code for member in members if (code := _code(member)) is not None))
    if not seen.codes or sys.gettrace() is not None:
        yield seen
        return

    def on_return(frame: FrameType, event: str, value: Any) -> Any:
        if event == "return":
            seen.line = _line(frame.f_code.co_filename, frame.f_lineno)
        return on_return

    def on_call(frame: FrameType, event: str, value: Any) -> Any:
        if frame.f_code not in seen.codes:
            return None
        frame.f_trace_lines = False
        return on_return

    sys.settrace(on_call)
    try:
        yield seen
    finally:
        sys.settrace(None)
