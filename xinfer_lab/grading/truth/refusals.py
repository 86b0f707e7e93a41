"""What Lab 1's judges of refusals share: a refusal with ValueError, and answers that need only not be one."""

from __future__ import annotations

from collections.abc import Mapping

from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify import Difference, Refuses

__all__ = ["Inputs", "any_answer", "refuses"]

Inputs = Mapping[str, Value]


def refuses(reason: str) -> Refuses:
    """A ValueError is asked for, because of ``reason``."""
    return Refuses("ValueError", reason)


def any_answer(expected: Value, got: Value, noun: str) -> Difference | None:
    """A judge's ``compare`` where another piece looks at the value: whatever is returned will do."""
    return None
