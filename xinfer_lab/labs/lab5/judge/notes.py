"""What an answer wrote down, told by what others waited for: the note that is missing, old, or one behind.

A race shows that a copy was not awaited. The cause shows in all the waits of a run together: the course's own
`prefetch` waits for what `evict` noted.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from xinfer_lab.device.device import WRITE_BACK
from xinfer_lab.device.records import Signal, Wait
from xinfer_lab.grading.programs.evidence import Evidence
from xinfer_lab.labs.lab5.pages import PageCopy, pages_of

__all__ = ["BEFORE", "NEVER", "ONCE", "RIGHT", "how_noted"]

RIGHT, NEVER, ONCE, BEFORE = "right", "never", "once", "before"
_TAKEN: dict[str, Callable[[int, int], int]] = {
    RIGHT: lambda old, new: new,
    NEVER: lambda old, new: old,
    ONCE: lambda old, new: old or new,
    BEFORE: lambda old, new: new - 1,
}
"""The note after a copy home that signals ``new``."""


def how_noted(evidence: Evidence) -> tuple[str, str] | None:
    """How ``emptied`` and ``returned`` were noted, if all that copies waited for can be explained so; else None."""
    moves = _moves(evidence)
    ways = product(_TAKEN, _TAKEN)
    return next(((emptied, returned) for emptied, returned in ways if _explains(moves, emptied, returned)), None)


def _moves(evidence: Evidence) -> list[tuple[PageCopy, int]]:
    """Each copy, with the value of ``saved`` that it signals, or that a copy to the device waited for."""
    copies = {copy.record: copy for copy in pages_of(evidence).copies}
    found: list[tuple[PageCopy, int]] = []
    awaited = 0
    for index, record in enumerate(evidence.stream):
        if isinstance(record, Wait) and record.queue == "copy" and record.fence.startswith("saved"):
            awaited = max(awaited, record.value)
        elif isinstance(record, Signal) and record.queue == WRITE_BACK and found and not found[-1][0].brings:
            found[-1] = found[-1][0], record.value
        elif (copy := copies.get(index)) is not None:
            found.append((copy, awaited))
            awaited = 0
    return found


def _explains(moves: list[tuple[PageCopy, int]], emptied: str, returned: str) -> bool:
    frames: dict[int, int] = {}
    pages: dict[int, int] = {}
    for copy, value in moves:
        if not copy.brings:
            frames[copy.frame] = _TAKEN[emptied](frames.get(copy.frame, 0), value)
            pages[copy.page] = _TAKEN[returned](pages.get(copy.page, 0), value)
        elif value != max(frames.get(copy.frame, 0), pages.get(copy.page, 0)):
            return False
    return True
