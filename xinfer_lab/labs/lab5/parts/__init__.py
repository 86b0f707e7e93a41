"""The parts of a page pool, a module each: what stands beside the part that a piece asks for.

A piece denies the module of its own part, so that this one is not there where an answer is recorded. The others have to
be, since the pool runs with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

__all__ = ["PARTS", "neighbours"]

PARTS = {
    "table": "PageTable",
    "clock": "Clock",
    "prefetch": "prefetch",
    "acquire": "acquire",
    "release": "release",
    "evict": "evict",
}
"""Names of modules here, and the class or function that each has."""


def neighbours(besides: str) -> Mapping[str, Any]:
    """All parts by the names of `PARTS`' values but the one of the module ``besides``."""
    return {
        part: getattr(import_module(f"{__name__}.{module}"), part)
        for module, part in PARTS.items()
        if module != besides
    }
