"""Sizes as people write them: ``8GiB``, ``500MB``, ``24G``, ``1048576``."""

from __future__ import annotations

import re

from xinfer_lab.cli.faults import CommandError

__all__ = ["parse_size"]

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([kmgt]?)(i?)(b?)\s*", re.IGNORECASE)
_TOO_MANY = 2**60
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_size(text: str) -> int:
    """The bytes that ``text`` names: KiB, MiB, GiB, TiB are powers of 1024, KB, MB, GB, TB of 1000; K, M, G, T of 1024.

    Raises `CommandError` for anything else and for less than one byte.
    """
    found = _SIZE.fullmatch(text)
    if found is None or (found[3] and not found[2]):
        raise CommandError(f"{text[:40]!r} is not a size in bytes; write it as 8GiB, 500MB or 1048576")
    base = 1000 if found[2] and found[4] and not found[3] else 1024
    number = float(found[1]) * base ** _POWERS[found[2].lower()]
    if number >= _TOO_MANY:
        raise CommandError(f"{text[:40]!r} is more than any memory; write it as 8GiB, 500MB or 1048576")
    size = int(number)
    if size < 1:
        raise CommandError(f"a memory budget is at least 1 byte, not {text!r}")
    return size
