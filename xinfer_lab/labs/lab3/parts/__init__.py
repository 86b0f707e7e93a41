"""The parts of a streaming ring, a module each: what stands beside the part that a piece asks for.

A piece denies the module of its own part, so that this one is not there where an answer is recorded. The others have to
be, since the ring runs with them.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any

__all__ = ["PARTS", "neighbours"]

Part = Callable[..., Any]

PARTS = ("layer_of", "slot_of", "wait_until_read", "prefetch", "ensure", "release")
"""Names of modules here, each with a function of that name."""


def neighbours(besides: str) -> Mapping[str, Part]:
    """All parts by name but the one called ``besides``, each without the names of its module."""
    found = {name: getattr(import_module(f"{__name__}.{name}"), name) for name in PARTS if name != besides}
    return {name: FunctionType(part.__code__, {"__builtins__": builtins}, name) for name, part in found.items()}
