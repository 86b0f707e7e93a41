"""The pieces of Lab 5 that drive queues: what a page pool submits, and the gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from xinfer_lab.device.device import Device
from xinfer_lab.grading.asking import itself
from xinfer_lab.grading.piece import Case, Piece
from xinfer_lab.grading.programs.record_program import ProgramPiece, Runner
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.values import Value
from xinfer_lab.labs.lab5 import script

__all__ = ["DENIED", "GATE_PIECES", "PAGING", "POOL_PIECES"]

PARTS = "xinfer_lab.labs.lab5.parts"
PAGING = tuple(
    f"xinfer_lab.paging.{name}"
    for name in ("table", "clock_policy", "lru", "belady", "tickets", "transfers", "placement", "pool")
)
"""What holds answers, or does the same thing for more than one page at a time."""
DENIED = (*PAGING, PARTS)
"""Where no part is given: the gate, and whatever is answered by a value. Marking starts a process for each such set."""

Inputs = Mapping[str, Value]
Opener = Callable[..., Device]
LETTERS = ["A", "B", "C", "D"]


def _plays(part: str) -> Runner:
    """Plays a script with the answer as ``part`` beside given ones."""

    def run(answer: Any, inputs: Inputs, open_device: Opener) -> None:
        script.play({**_neighbours(part), part: answer}, inputs, open_device)

    return run


def _neighbours(part: str) -> Mapping[str, Any]:
    # Imported when it is needed: where the gate is recorded, none of the parts is there.
    from xinfer_lab.labs.lab5.parts import neighbours

    return neighbours(part)


def _gate(answer: Any, inputs: Inputs, open_device: Opener) -> None:
    from xinfer_lab.labs.lab5.mixture_case import MixtureCase, run_mixture

    run_mixture(MixtureCase.of(inputs), dict(answer), open_device)


def _choice(name: str) -> Question:
    return Question(f"lab5.{name}", 1, lambda random: [Case("your choice", {"choices": LETTERS})], itself, DENIED)


def _piece(name: str, points: int, part: str, scripts: str) -> ProgramPiece:
    def drawn(random: Random) -> list[Case]:
        # Imported when it is needed: it knows CLOCK, and where an answer is recorded nothing that does is there.
        from xinfer_lab.labs.lab5 import script_draw

        cases: list[Case] = getattr(script_draw, scripts)(random)
        return cases

    return ProgramPiece(f"lab5.{name}", points, drawn, _plays(part), (*PAGING, f"{PARTS}.{part}"), cpu_seconds=2.0)


def _mixtures(random: Random) -> list[Case]:
    from xinfer_lab.labs.lab5.mixture_draw import mixtures

    return mixtures(random)


POOL_PIECES: tuple[Piece, ...] = (
    _choice("predict_wait"),
    _piece("prefetch", 3, "prefetch", "asked_ahead"),
    _piece("acquire", 3, "acquire", "acquired"),
    _piece("release", 2, "release", "released"),
    _piece("evict", 2, "evict", "evicted"),
    _piece("write_back", 3, "evict", "written"),
)
"""In the notebook's order."""

GATE_PIECES: tuple[Piece, ...] = (ProgramPiece("lab5.gate", 5, _mixtures, _gate, DENIED, cpu_seconds=8.0),)
