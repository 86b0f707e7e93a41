"""The cases of Lab 4: small models to stream, and tables of states to fill in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.programs.model_case import ModelCase

__all__ = ["LONG", "PASSING", "STATES", "gate_streams", "patients", "streams"]

STATES = ["COMMON", "COPY_DEST", "NON_PIXEL_SHADER_RESOURCE", "barrier", "accepted", "rejected"]
"""What may stand in a row of the prediction table."""

PASSING = ["right", "needless", "race", "rejected"]
"""What may stand in a row of the second table."""

LONG = 250
"""Steps of a long run, and more: beyond the numbers that Python keeps one object of. No logits of it are compared."""


def streams(random: Random) -> list[Case]:
    """Models to stream: pools of 2 to 8 slots, that divide the number of layers and that do not; one with as many slots
    as layers, so that each layer is in its slot already when its step comes again; passes that are announced at once
    and one by one; one model that is not alone."""
    many = random.randint(4, 8)
    return [
        _case(random, random.choice((4, 6)), 2, 2),
        _case(random, random.choice((5, 7)), 3, 3, begins=random.choice((2, 3))),
        _case(random, many + random.choice((1, 2, 3)), many, 2, begins=2),
        _case(random, 2, 2, random.choice((2, 3))),
        _case(random, random.choice((5, 7)), 2, 2, others=True),
    ]


def gate_streams(random: Random) -> list[Case]:
    """The same, and a long run of many layers."""
    shape = _case(random, random.randint(126, 130), random.choice((3, 4, 8)), 2, begins=2).inputs
    small = ModelCase.of({**shape, **_SMALL}).with_memory(shape["pool"])
    return [*streams(random), Case(small.label, small.inputs())]


_SMALL = {"hidden": 16, "heads": 1, "kv_heads": 1, "intermediate": 8, "vocab": 16, "batch": 1, "prompt": 2}


def patients(spare: int = 0) -> Callable[[Random], list[Case]]:
    """Models for a streamer of the clinic, with room for ``spare`` slots beside the pool. Slots, of which there are
    ``pool`` + ``spare``, are placed wrong by layer number in the first and the third; the fourth has as many slots as
    layers."""

    def drawn(random: Random) -> list[Case]:
        many = random.randint(4, 8)
        return [
            _case(random, _shows(random, 2, spare), 2, random.choice((2, 3)), spare=spare),
            _case(random, random.choice((4, 6)), 2, 2, spare=spare),
            _case(random, _shows(random, many, spare), many, 2, spare=spare),
            _case(random, 3, 3, random.choice((2, 3)), spare=spare),
            _case(random, random.choice((5, 7)), 3, 2, spare=spare, others=True),
        ]

    return drawn


def _shows(random: Random, pool: int, spare: int) -> int:
    """Layers whose number modulo the slots is from 1 to ``pool`` - 1: at the end of a pass two of them that are to be
    there at once have one slot."""
    return (pool + spare) * random.choice((1, 2)) + random.randint(1, pool - 1)


def _case(random: Random, layers: int, pool: int, steps: int, *, spare: int = 0, **more: Any) -> Case:
    case = replace(ModelCase.draw(random, layers=layers, pool=pool, steps=steps, slots=pool + spare), **more)
    return Case(case.label, case.inputs())
