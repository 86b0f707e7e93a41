"""What Lab 1's judges of refusals share: a refusal with ValueError, and answers that need only not be one."""

from __future__ import annotations

from collections.abc import Mapping

from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify_values import Difference, Refuses

__all__ = ["JSON_ERRORS", "Inputs", "any_answer", "refuses"]

Inputs = Mapping[str, Value]


JSON_ERRORS = ("JSONDecodeError", "UnicodeDecodeError")
"""What a library raises where text is not JSON: for that very reason, so that it counts as a refusal."""


def refuses(reason: str, *also: str) -> Refuses:
    """A ValueError is asked for, because of ``reason``; ``also`` as in `Refuses`."""
    return Refuses("ValueError", reason, also=also)


def any_answer(expected: Value, got: Value, noun: str) -> Difference | None:
    """A judge's ``compare`` where another piece looks at the value: whatever is returned will do."""
    return None
