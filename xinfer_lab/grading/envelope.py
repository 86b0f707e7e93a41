"""The recorded data's outer form, read on the trusted side: outcomes by case, exceptions and source lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import BadData, Value, decode

__all__ = ["Raised", "read_line", "read_outcomes", "read_raised"]


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception that an answer raised: its class, the names of its bases, message and arguments."""

    type: str
    bases: tuple[str, ...]
    message: str
    args: tuple[Value, ...]


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


def read_raised(raised: object) -> Raised:
    """The exception that ``raised`` says. Raises `BadData`."""
    if type(raised) is not dict or set(raised) != {"type", "bases", "message", "args"}:
        raise BadData("an exception has not the fields type, bases, message and args")
    kind, bases, message = raised["type"], raised["bases"], raised["message"]
    if not isinstance(kind, str) or not isinstance(message, str) or not isinstance(bases, list):
        raise BadData("an exception's fields are of the wrong type")
    if len(bases) > 20 or not all(isinstance(base, str) for base in bases):
        raise BadData("an exception's bases are not a short list of names")
    args = decode(raised["args"])
    if not isinstance(args, list):
        raise BadData("an exception's arguments are not a list")
    return Raised(kind[:200], tuple(bases), message[:2000], tuple(args))


def read_line(line: object) -> str | None:
    """``"line 7: text"``, or None where no line is known. Raises `BadData`."""
    match line:
        case None:
            return None
        case {"number": int(number), "text": str(text), **rest} if not rest and type(number) is int:
            return f"line {min(number, 10**6)}: {text[:200]}"
    raise BadData("a source line has not a number and a text")
