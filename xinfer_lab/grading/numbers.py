"""What counts as a number, everywhere: an `Integral` is an int, a `Real` a float, whichever library made it.

NumPy and torch scalars, `Fraction` and `Decimal` are numbers. True is none, and text is none.
"""

from __future__ import annotations

import operator
from decimal import Decimal
from numbers import Integral, Real

__all__ = ["plain_scalar", "whole"]


def plain_scalar(value: object) -> bool | int | float | None:
    """The bool, int or float that ``value`` stands for; None where it stands for none of them.

    Never raises. Calls nothing of ``value`` but ``__index__``, ``__float__`` and ``item``.
    """
    if value is None or isinstance(value, (str, bytes, bytearray, list, tuple, dict)):
        return None
    if type(value) in (bool, int, float):
        return value  # type: ignore[return-value]
    try:
        if isinstance(value, Integral):
            return int(operator.index(value))
        if isinstance(value, (Real, Decimal)):
            return float(value)
        if getattr(value, "shape", None) == () and (item := value.item()) is not value:  # type: ignore[attr-defined]
            return plain_scalar(item) if type(item) in (bool, int, float) else None
    except Exception:
        return None
    return None


def whole(value: object) -> int | None:
    """``value`` as an int; None for what is no whole number, True among them."""
    number = plain_scalar(value)
    return number if type(number) is int else None
