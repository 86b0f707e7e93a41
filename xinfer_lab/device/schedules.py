"""Schedules: which of the orders that the fences allow an emulated device takes. They show bugs; they prove nothing."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["SCHEDULES", "Schedule", "Step", "open_schedule"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a queue could do next. A command has two: its begin and its end.

    ``time`` is its time on the virtual clock, in seconds; ``index`` the record's place in the stream.
    """

    queue: str
    kind: str
    is_end: bool
    index: int
    time: float


class Schedule(Protocol):
    """Picks one of the steps that could be next."""

    def pick(self, steps: Sequence[Step]) -> int:
        """The position in ``steps`` (one per queue that can go on, never empty) of the step to take."""
        ...


class _Timed:
    """In the virtual clock's order."""

    def pick(self, steps: Sequence[Step]) -> int:
        return min(range(len(steps)), key=lambda i: (steps[i].time, steps[i].index, steps[i].is_end))


class _Preferring:
    """Copy queues whenever they can go on (``copies_first``), or only when nothing else can (``copies_last``)."""

    def __init__(self, *, copies_first: bool) -> None:
        self._copies_first = copies_first

    def pick(self, steps: Sequence[Step]) -> int:
        return min(range(len(steps)), key=lambda i: ((steps[i].kind == "copy") != self._copies_first, steps[i].index))


class _Random:
    """Any of them, by a seeded generator: the same seed gives the same order on every machine."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, steps: Sequence[Step]) -> int:
        return self._random.randrange(len(steps))


SCHEDULES = ("timed", "copies_first", "copies_last", "random(SEED)")
"""The names that `open_schedule` knows."""


def open_schedule(name: str) -> Schedule:
    """The schedule called ``name``: "timed", "copies_first", "copies_last", "random" (seed 0) or "random(7)"."""
    if name == "timed":
        return _Timed()
    if name in ("copies_first", "copies_last"):
        return _Preferring(copies_first=name == "copies_first")
    if name == "random":
        return _Random(0)
    if (seed := re.fullmatch(r"random\((-?[0-9]{1,18})\)", name)) is not None:
        return _Random(int(seed[1]))
    raise ValueError(f"there is no schedule {name!r}; choose one of {', '.join(SCHEDULES)}")
