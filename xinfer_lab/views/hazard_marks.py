"""Defines what a picture needs to know of a hazard, whether a checker found it or somebody drew it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["HazardLike", "HazardMark", "hazard_sentence"]


class HazardLike(Protocol):
    """Records ``first`` and ``second`` (indices into the stream) race; `xinfer_lab.device.hazards.Hazard` is one."""

    @property
    def kind(self) -> str:
        """A short name, such as ``"write-after-read"``."""

    @property
    def first(self) -> int:
        """The record issued first."""

    @property
    def second(self) -> int:
        """The record issued second."""

    @property
    def headline(self) -> str:
        """One line about it."""


@dataclass(frozen=True, slots=True)
class HazardMark:
    """A hazard drawn by hand, for an illustration that no checker has seen."""

    kind: str
    first: int
    second: int
    headline: str = ""


def hazard_sentence(hazard: HazardLike, place: int) -> str:
    """``hazard`` in words, as number ``place``: pictures number hazards in their order, from 1."""
    return f"Hazard {place} (records {hazard.first} and {hazard.second}): {hazard.headline or hazard.kind}"
