"""Lab 5: numbers as a program meets them: the same one comes from many places, each time as another object."""

from __future__ import annotations

__all__ = ["anew"]


def anew(number: int) -> int:
    """``number`` as an object of its own. Which numbers are one object is Python's business: a program that compares
    them by ``is`` is wrong, and must not be right as long as they come out of one list."""
    return int(str(number))
