"""A part of the machine that a student builds: the answer to one or more checks, kept once they pass."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from xinfer_lab.grading.rooms import LABS

__all__ = ["Part", "part_of", "parts_of"]


@dataclass(frozen=True, slots=True)
class Part:
    """``name`` is the part's file and its name in reports, ``code`` the function or class that the file defines.

    ``checks`` are the checks that it has to pass; ``does`` says in a few words what the machine needs it for. ``calls``
    are the calls that the machine makes: ``"(step, layers)"`` of the code itself, ``"allocate(size)"`` of a method.
    """

    name: str
    code: str
    checks: tuple[str, ...]
    does: str
    calls: tuple[str, ...]


def parts_of(lab: str) -> tuple[Part, ...]:
    """The parts that ``lab`` builds, in the order of its notebook: ``KEPT`` of its module ``kept``, if it has one."""
    if lab not in LABS or find_spec(f"xinfer_lab.labs.{lab}.kept") is None:
        return ()
    parts: tuple[Part, ...] = import_module(f"xinfer_lab.labs.{lab}.kept").KEPT
    return parts


def part_of(check: str) -> Part | None:
    """The part that ``check`` ("lab3.prefetch") is about, if it is about one."""
    return next((part for part in parts_of(check.partition(".")[0]) if check in part.checks), None)
