"""A part of the machine that a student builds: the answer to one or more checks, kept once they pass."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from xinfer_lab.grading.rooms import LABS

__all__ = ["Part", "parts_of"]


@dataclass(frozen=True, slots=True)
class Part:
    """``name`` is the part's file and its name in reports, ``code`` the function or class that the file defines.

    ``checks`` are the checks that it has to pass; ``does`` says in a few words what the machine needs it for.
    """

    name: str
    code: str
    checks: tuple[str, ...]
    does: str


def parts_of(lab: str) -> tuple[Part, ...]:
    """The parts that ``lab`` builds, in the order of its notebook: ``KEPT`` of its module ``kept``, if it has one."""
    if lab not in LABS or find_spec(f"xinfer_lab.labs.{lab}.kept") is None:
        return ()
    parts: tuple[Part, ...] = import_module(f"xinfer_lab.labs.{lab}.kept").KEPT
    return parts
