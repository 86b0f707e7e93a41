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

LONG = 300
"""Steps of a long run, and more: far beyond the numbers that Python keeps one object of. No logits of it are
compared."""


def streams(random: Random) -> list[Case]:
    """Models to stream: pools of 2, 3, 8 and some number of slots between, which divide the number of layers and do
    not; one with as many slots as layers, so that each layer is in its slot already when its step comes again; passes
    that are announced at once and one by one; one after many passes; one model that is not alone."""
    return [
        *_short(random),
        _case(random, 8 + random.choice((1, 2, 3)), 8, 2, begins=2, begun=random.randint(35, 40)),
    ]


def gate_streams(random: Random) -> list[Case]:
    """As `streams`, and in place of one after many passes a long run of many layers. A class may keep counters of its
    own, so nothing else would do."""
    long = ModelCase.draw(random, layers=random.randint(126, 130), pool=8, steps=3).smallest().with_memory(8)
    case = replace(long, begins=random.choice((2, 3)))
    return [*_short(random), Case(case.label, case.inputs())]


def _short(random: Random) -> list[Case]:
    between = random.randint(4, 7)
    return [
        _case(random, random.choice((4, 6)), 2, 2),
        _case(random, random.choice((5, 7)), 3, 3, begins=random.choice((2, 3))),
        _case(random, 2, 2, random.choice((2, 3))),
        _case(random, between + random.choice((1, 2)), between, 2, others=True),
    ]


def patients(spare: int = 0) -> Callable[[Random], list[Case]]:
    """Models for a streamer of the clinic, with room for ``spare`` slots beside the pool. Slots, of which there are
    ``pool`` + ``spare``, are placed wrong by layer number in the first and the third; the second begins after many
    passes; the fourth has as many slots as layers."""

    def drawn(random: Random) -> list[Case]:
        between = random.randint(4, 7)
        return [
            _case(random, _shows(random, 2, spare), 2, random.choice((2, 3)), spare=spare),
            # Before step 0, or a step that has the same place in pool and slots, the first slots are filled.
            _case(random, 6, 2, 2, spare=spare, begun=random.randint(50, 60)),
            _case(random, _shows(random, 8, spare, times=1), 8, 2, spare=spare),
            _case(random, 3, 3, random.choice((2, 3)), spare=spare),
            _case(random, between + random.choice((1, 2)), between, 2, spare=spare, others=True),
        ]

    return drawn


def _shows(random: Random, pool: int, spare: int, times: int | None = None) -> int:
    """Layers whose number modulo the slots is from 1 to ``pool`` - 1: at the end of a pass two of them that are to be
    there at once have one slot."""
    return (pool + spare) * (times or random.choice((1, 2))) + random.randint(1, pool - 1)


def _case(random: Random, layers: int, pool: int, steps: int, *, spare: int = 0, **more: Any) -> Case:
    case = replace(ModelCase.draw(random, layers=layers, pool=pool, steps=steps, slots=pool + spare), **more)
    return Case(case.label, case.inputs())
