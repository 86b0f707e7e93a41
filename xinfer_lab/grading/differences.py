"""How two decoded values part: where, what was asked for, and what is there."""

from __future__ import annotations

from dataclasses import dataclass

from xinfer_lab.grading.values import Opaque, Value, shown

__all__ = ["Difference", "equal", "first_difference"]


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

    Types count: ``True`` is not 1, 2.0 is not 2 where a whole number was asked for (but 2 is 2.0), and NaN equals
    nothing. A recording has lists alone, so a tuple of the truth equals a list. ``why`` is '' where only the values
    differ.
    """
    if type(expected) is float and type(got) is int:
        return None if expected == got else (path, expected, got, "")
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
