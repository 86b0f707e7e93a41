"""Lab 6: the cases of a race: models that are run within a budget, and needs that a plan is asked for alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from xinfer_lab.device.gpu_spec import GPU_SPECS, GpuSpec
from xinfer_lab.grading.values import BadData, Value
from xinfer_lab.labs.lab6.judge.bounds import Best, plans_of
from xinfer_lab.labs.lab6.planned_case import PlannedCase

__all__ = ["AskedCase", "Inputs", "RaceCase", "best_of", "read_case"]

Inputs = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class RaceCase(PlannedCase):
    """A `PlannedCase`, what its planner was told (as JSON), and the seed that it was drawn from."""

    told: str
    drawn_from: int

    @classmethod
    def read(cls, inputs: Inputs) -> RaceCase:
        """The case that ``inputs`` describe. Raises `BadData`."""
        if not isinstance(inputs.get("needs"), dict) or type(inputs.get("draw")) is not int:
            raise BadData("a case of the race has needs and the seed that it was drawn from")
        figures = {name: value for name, value in inputs.items() if name not in ("needs", "draw")}
        plain = PlannedCase.of(figures)
        return cls(**plain.inputs(), told=json.dumps(inputs["needs"], sort_keys=True), drawn_from=inputs["draw"])

    @property
    def needs(self) -> dict[str, Any]:
        """What its planner was told."""
        told: dict[str, Any] = json.loads(self.told)
        return told


@dataclass(frozen=True, slots=True)
class AskedCase:
    """Needs that a plan is asked for, and no model: nothing is run. (As a `ProgramCase` it is an empty one.)"""

    told: str
    label: str = ""
    memory: int | None = None
    steps: int = 0
    read_backs: tuple[str, ...] = ()

    @property
    def needs(self) -> dict[str, Any]:
        """What its planner is told."""
        told: dict[str, Any] = json.loads(self.told)
        return told

    @property
    def is_uneven(self) -> bool:
        """Whether its layers differ, its cache grows, or its link is unsteady: it counts for the leaderboard only."""
        return "uneven" in self.needs

    @property
    def layers(self) -> int:
        """Layers of the model that is not there."""
        layers: int = self.needs["layers"]
        return layers

    def weights(self) -> Any:
        """Nothing: no byte of it is ever asked for."""
        return None

    def spec(self, ratio: float = 1.0) -> GpuSpec:
        """Some GPU."""
        return GPU_SPECS["laptop"]


def read_case(inputs: Inputs) -> RaceCase | AskedCase:
    """The case that ``inputs`` describe. Raises `BadData`."""
    if set(inputs) == {"needs", "draw"} and isinstance(inputs["needs"], dict):
        return AskedCase(json.dumps(inputs["needs"], sort_keys=True))
    return RaceCase.read(inputs)


@lru_cache(maxsize=256)
def _plans(told: str) -> tuple[Best, ...]:
    return plans_of(json.loads(told))


def best_of(case: RaceCase | AskedCase) -> Best:
    """The best of all plans."""
    return min(_plans(case.told), key=lambda best: best.bound)
