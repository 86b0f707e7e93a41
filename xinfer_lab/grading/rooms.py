"""Finds the labs by their folders: a folder with ``pieces.py`` is a lab."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from xinfer_lab.grading.denial import Allowed

__all__ = ["ALWAYS_DENIED", "LABS", "allowed_in", "hidden_in"]

_ROOMS = Path(__file__).parents[1] / "labs"

LABS = tuple(sorted(path.parent.name for path in _ROOMS.glob("*/pieces.py")))
"""The labs that have pieces, in order: ``"lab1"``, ``"lab2"``, ..."""

READERS = ("torch.distributed.checkpoint",)
"""What torch has that reads a checkpoint's header by itself."""

ALWAYS_DENIED = ("xinfer_lab.grading.judges", *(f"xinfer_lab.labs.{lab}.judge" for lab in LABS), *READERS)
"""Modules that no answer may use: they know what is right."""


def allowed_in(piece: str) -> Allowed | None:
    """What an answer to ``piece`` may import: what ``allowed.py`` in its lab's folder says; None where no folder is."""
    lab = piece.partition(".")[0]
    if find_spec(f"xinfer_lab.labs.{lab}") is None:
        return None
    names: tuple[str, ...] = import_module(f"xinfer_lab.labs.{lab}.allowed").ALLOWED
    return Allowed(names)


def hidden_in(piece: str) -> tuple[str, ...]:
    """Modules that no answer of the lab of ``piece`` may reach, besides those that the piece itself denies."""
    lab = import_module(f"xinfer_lab.labs.{piece.partition('.')[0]}.allowed")
    return (*ALWAYS_DENIED, *getattr(lab, "HIDDEN", ()))
