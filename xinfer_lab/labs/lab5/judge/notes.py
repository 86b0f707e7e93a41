"""What an answer wrote down, worked out from a whole run: the note that is missing, old, or one behind.

A race shows that a copy was not awaited, and a loss that a page was not copied home. The cause shows in all waits and
copies together, since the parts beside the answer go by what it noted.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from xinfer_lab.device.device import WRITE_BACK
from xinfer_lab.device.records import Signal, Wait
from xinfer_lab.grading.programs.calls import REFUSED
from xinfer_lab.grading.programs.evidence import Evidence
from xinfer_lab.labs.lab5.pages import PageCopy, PoolCall, pages_of

__all__ = [
    "ARRIVING",
    "BEFORE",
    "FIRST_USER",
    "NEVER",
    "ONCE",
    "READER_CLEANS",
    "how_marked",
    "how_noted",
    "how_released",
]

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


def how_released(evidence: Evidence) -> str | None:
    """How `last_use` was noted, if all that copies waited for can be explained so; else None."""
    return next((way for way in _TAKEN if _explains_waits(evidence, _TAKEN[way])), None)


def _explains_waits(evidence: Evidence, take: Callable[[int, int], int]) -> bool:
    noted: dict[int | None, int] = {}
    copies = {copy.record: copy for copy in pages_of(evidence).copies}
    ends = {call.call.end: call for call in pages_of(evidence).calls if call.name == "release"}
    awaited, signalled = dict[str, int](), dict[int, int]()
    for index, record in enumerate(evidence.stream):
        if (call := ends.get(index)) is not None and (value := signalled.get(index - 1)):
            frame = call.before.frame_of(call.page)
            noted[frame] = take(noted.get(frame, 0), value)
        if isinstance(record, Signal) and record.queue == "direct":
            signalled[index] = record.value
        elif isinstance(record, Wait) and record.fence.startswith("released"):
            awaited[record.queue] = record.value
        elif (copy := copies.get(index)) is not None and awaited.pop(copy.queue, 0) != noted.get(copy.frame, 0):
            return False
    return True


READER_CLEANS, FIRST_USER, ARRIVING = "a reader cleans", "the first user", "where it has just come"
_MARKS: dict[str, Callable[[bool, bool, PoolCall], bool]] = {
    NEVER: lambda dirty, write, call: dirty,
    READER_CLEANS: lambda dirty, write, call: write,
    FIRST_USER: lambda dirty, write, call: dirty or (write and not call.before.pins.get(call.page, 0)),
    ARRIVING: lambda dirty, write, call: dirty or (write and call.page not in call.before.arrived),
}
"""Whether a page is dirty after ``call`` acquired it, to write or to read."""


def how_marked(evidence: Evidence) -> str | None:
    """How `acquire` marked pages dirty, if what went home in the run of a script can be explained so; else None."""
    writes = [op == "write" for op, _ in evidence.case.ops if op in ("write", "acquire")]
    return next((way for way in _MARKS if _goes_home(evidence, _MARKS[way], writes)), None)


def _goes_home(evidence: Evidence, mark: Callable[[bool, bool, PoolCall], bool], writes: list[bool]) -> bool:
    dirty: set[int | None] = set()
    asked = iter(writes)
    for call in pages_of(evidence).calls:
        for copy in call.copies:
            # A page goes home where it is dirty; one that is, and does not, would be overwritten.
            if copy.brings == (copy.held in dirty):
                return False
            dirty -= {copy.held}
        if call.name == "evict" and call.page in dirty:
            return False
        if call.name == "acquire":
            write = next(asked, False)
            if call.result not in (None, REFUSED):
                now = mark(call.page in dirty, write, call)
                dirty = dirty | {call.page} if now else dirty - {call.page}
    return True
