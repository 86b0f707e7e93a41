"""Checks what programs pass in, where it comes in: a stream holds nothing that could not be loaded again."""

from __future__ import annotations

import operator
from typing import SupportsIndex

from xinfer_lab.device.records import MAX_NAME

__all__ = ["plain_name", "whole_number"]


def whole_number(value: SupportsIndex, what: str) -> int:
    """``value`` as an int. Raises TypeError for a float, a bool or anything else that is not a whole number."""
    if type(value) is int:
        return value
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be a whole number, not {value!r}; divide with // rather than /") from None


def plain_name(name: str, what: str) -> str:
    """``name`` itself. Raises TypeError unless it is text, ValueError if it is empty or too long for a stream."""
    if not isinstance(name, str):
        raise TypeError(f"the name of {what} is text, not {name!r}")
    if not 0 < len(name) <= MAX_NAME:
        raise ValueError(f"the name of {what} has 1 to {MAX_NAME} characters, not {len(name)}")
    return name
