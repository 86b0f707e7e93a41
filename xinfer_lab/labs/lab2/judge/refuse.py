"""Lab 2: what the staging ring refuses, and that a refusal changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify_values import Judge, Refuses, WrongModel
from xinfer_lab.labs.lab2.judge.ring import places
from xinfer_lab.labs.lab2.script import UNIT

__all__ = ["REFUSE"]


def _too_large(inputs: Mapping[str, Value], *, full: bool = False) -> Refuses | None:
    room, size = inputs["room"], inputs["sizes"][-1]
    if 0 < size <= room - full:
        return None
    # A heap refuses what lies outside of it for this very reason.
    return Refuses("BufferRangeError", f"a ring of {room} bytes can never hand out {size}", also=("BufferRangeError",))


def _offsets(inputs: Mapping[str, Value]) -> Value:
    if inputs["retired"] is not None:
        return _going_on(inputs)
    room, sizes = inputs["room"], inputs["sizes"]
    if (refused := _too_large(inputs)) is not None:
        return refused
    starts, taken = places(room, sizes), -(-sizes[-1] // UNIT) * UNIT
    for start, size in zip(starts[:-1], sizes[:-1], strict=True):
        if starts[-1] < start + size and start < starts[-1] + taken:
            return Refuses("RuntimeError", "the room is taken by a range that was never retired: waiting would not end")
    return starts


def _going_on(
    inputs: Mapping[str, Value], *, checks: bool = True, moves: bool = False, forgets: bool = False, full: bool = False
) -> list[Value]:
    """What is found where the program goes on after a refusal.

    Of a wrong ring: it hands out what is in use (not ``checks``), a refused request has moved its head (``moves``) or
    made it forget its oldest range (``forgets``), or its whole room counts as too large (``full``).
    """
    room, head = inputs["room"], 0
    used: list[tuple[int, int]] = []
    found: list[Value] = []

    def ask(size: int) -> None:
        nonlocal head
        if not 0 < size <= room - full:
            found.append("BufferRangeError")
            return
        taken = -(-size // UNIT) * UNIT
        start = head if head + taken <= room else 0
        if moves:
            head = start + taken
        if checks and any(low < start + taken and start < high for low, high in used):
            if forgets:
                used.pop(0)
            found.append("RuntimeError")
            return
        used.append((start, start + taken))
        head = start + taken
        found.append(f"at {start}")

    for size in inputs["sizes"]:
        ask(size)
    if inputs["retired"]:
        used.clear()
        ask(inputs["sizes"][-1])
    return found


def _as_if(**wrong: bool) -> Callable[[Mapping[str, Value]], Value]:
    return lambda inputs: _offsets(inputs) if inputs["retired"] is None else _going_on(inputs, **wrong)


def _lets_through(which: Callable[[int, int], bool]) -> Callable[[Mapping[str, Value]], Value]:
    """A ring that hands out a size for which ``which(size, room)`` holds, as if it were a size like any other."""

    def model(inputs: Mapping[str, Value]) -> Value:
        room, sizes = inputs["room"], inputs["sizes"]
        if inputs["retired"] is not None or not which(sizes[-1], room):
            return _offsets(inputs)
        return places(room, sizes)

    return model


REFUSE = Judge(
    truth=_offsets,
    passed="What can never fit is refused, nothing else is, and a refusal changes nothing.",
    noun="list of offsets",
    wrong=(
        WrongModel(
            "A range in use is handed out again",
            "A range that was allocated but not retired is in use: its copy was perhaps not even submitted.",
            lambda inputs: (
                _going_on(inputs, checks=False)
                if inputs["retired"] is not None
                else _too_large(inputs) or places(inputs["room"], inputs["sizes"])
            ),
            rule="in_use",
        ),
        WrongModel(
            "Exactly full counts as too large",
            "A range may be as large as the ring: 0 < size <= ring size.",
            lambda inputs: (
                _going_on(inputs, full=True)
                if inputs["retired"] is not None
                else _too_large(inputs, full=True) or _offsets(inputs)
            ),
            rule="exactly_full",
        ),
        WrongModel(
            "A size below 1 is handed out",
            "No bytes and fewer than none are no range: BufferRangeError for a size below 1.",
            _lets_through(lambda size, room: size < 1),
            rule="below_1",
        ),
        WrongModel(
            "A size above the ring's is handed out",
            "What is larger than the ring can never be had: BufferRangeError, whatever is free.",
            _lets_through(lambda size, room: size > room),
            rule="too_large",
        ),
        WrongModel(
            "A refusal moves the head",
            "A refused request changes nothing: move the head only when the range is handed out.",
            _as_if(moves=True),
            rule="changes_nothing",
        ),
        WrongModel(
            "A refusal forgets a range",
            "A refused request changes nothing: look at the oldest range first, and take it out of the books only when "
            "you have waited for it.",
            _as_if(forgets=True),
            rule="changes_nothing",
        ),
    ),
    besides=("refuses",),
)
