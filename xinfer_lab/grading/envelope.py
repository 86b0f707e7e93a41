"""The recorded data's outer form, read on the trusted side: outcomes by case, exceptions and source lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.raised import ANSWER, Origin
from xinfer_lab.grading.values import BadData, Value, decode

__all__ = ["MAX_BETWEEN", "MAX_RECORDS", "UNANSWERED", "Raised", "read_line", "read_outcomes", "read_raised"]

MAX_RECORDS = 100_000
"""Commands that one case of a queue program may submit: a long run of 390 steps needs 6,000, and one in which each step
waits for all steps before it 80,000."""

MAX_BETWEEN = 10_000
"""Commands from one kernel to the next: whoever submits more is in a loop that does not end."""

UNANSWERED = ("NotImplementedError", "AnswerTimeout", "NotAllowed", "DeniedModule")
"""Exceptions that say that an answer is not there, never ended, or is not its own."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception that an answer raised: its class, the names of its bases, message and arguments, who raised it
    (see `xinfer_lab.grading.raised`), and the student's line."""

    type: str
    bases: tuple[str, ...]
    message: str
    args: tuple[Value, ...]
    by: str = ANSWER
    stated: bool = True
    line: str | None = None

    @property
    def refuses(self) -> bool:
        """Whether it is a refusal: a `raise` of the answer's own."""
        return Origin(self.by, self.stated).refuses

    @property
    def unanswered(self) -> str:
        """Why there is no answer at all, by the class that says so; '' where there is one."""
        return next((name for name in UNANSWERED if name in (self.type, *self.bases)), "")

    @property
    def raiser(self) -> str:
        """Who raised it, in words."""
        if self.by == ANSWER:
            return "a raise of yours" if self.stated else "Python itself, in a line of yours"
        return "the program around your answer" if self.by.startswith("xinfer_lab.") else f"the module {self.by}"


def read_outcomes(piece: str, cases: Sequence[Case], data: object) -> tuple[list[dict[str, Any]], str | None]:
    """The outcomes, at most one for each case, still unread, and the line where the answer is defined.

    Raises `BadData`.
    """
    if type(data) is not dict or set(data) != {"schema", "piece", "defined", "outcomes"}:
        raise BadData("it has not the fields schema, piece, defined and outcomes")
    if data["schema"] != 1 or type(data["schema"]) is not int or data["piece"] != piece:
        raise BadData("it belongs to another piece or another version")
    listed = data["outcomes"]
    if type(listed) is not list or len(listed) > len(cases):
        raise BadData("its outcomes are not a list with at most one for each case")
    if not all(type(item) is dict for item in listed):
        raise BadData("an outcome is not an object")
    return listed, read_line(data["defined"])


def read_raised(raised: object, line: object = None) -> Raised:
    """The exception that ``raised`` says, at the student's ``line``. Raises `BadData`."""
    if type(raised) is not dict or set(raised) != {"type", "bases", "message", "args", "by", "stated"}:
        raise BadData("an exception has not the fields type, bases, message, args, by and stated")
    kind, bases, message, by = raised["type"], raised["bases"], raised["message"], raised["by"]
    texts = isinstance(kind, str) and isinstance(message, str) and isinstance(by, str)
    if not texts or not isinstance(bases, list) or type(raised["stated"]) is not bool:
        raise BadData("an exception's fields are of the wrong type")
    if len(bases) > 20 or not all(isinstance(base, str) for base in bases):
        raise BadData("an exception's bases are not a short list of names")
    args = decode(raised["args"])
    if not isinstance(args, list):
        raise BadData("an exception's arguments are not a list")
    return Raised(kind[:200], tuple(bases), message[:2000], tuple(args), by[:200], raised["stated"], read_line(line))


def read_line(line: object) -> str | None:
    """``"line 7: text"``, or None where no line is known. Raises `BadData`."""
    match line:
        case None:
            return None
        case {"number": int(number), "text": str(text), **rest} if not rest and type(number) is int:
            return f"line {min(number, 10**6)}: {text[:200]}"
    raise BadData("a source line has not a number and a text")
