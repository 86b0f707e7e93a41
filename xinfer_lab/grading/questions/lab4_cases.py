"""The cases of Lab 4: small models to stream, and tables of states to fill in."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.programs.model_case import ModelCase

__all__ = ["PASSING", "STATES", "patients", "streams"]

STATES = ["COMMON", "COPY_DEST", "NON_PIXEL_SHADER_RESOURCE", "barrier", "accepted", "rejected"]
"""What may stand in a row of the prediction table."""

PASSING = ["right", "needless", "race", "rejected"]
"""What may stand in a row of the second table."""


def streams(random: Random) -> list[Case]:
    """Models to stream: pools that divide the number of layers and pools that do not, one wider than two; the last has
    as many slots as layers, so that each layer is in its slot already when its step comes again."""
    shapes = [(random.choice((4, 6)), 2), (random.choice((5, 7)), 3), (random.choice((5, 7)), 2), (2, 2)]
    return [_case(random, layers, pool) for layers, pool in shapes]


def patients(spare: int = 0) -> Callable[[Random], list[Case]]:
    """Models for a streamer of the clinic, with room for ``spare`` slots beside the pool; the first is one that shows
    a wrong wrap, the last has as many slots as layers."""

    def drawn(random: Random) -> list[Case]:
        shapes = [(random.choice((5, 7)), 2), (random.choice((4, 5, 7)), 3), (random.choice((4, 6)), 2), (2, 2)]
        return [_case(random, layers, pool, spare) for layers, pool in shapes]

    return drawn


def _case(random: Random, layers: int, pool: int, spare: int = 0) -> Case:
    case = ModelCase.draw(random, layers=layers, pool=pool, steps=random.choice((2, 3)), slots=pool + spare)
    return Case(case.label, case.inputs())
