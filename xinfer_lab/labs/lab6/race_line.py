"""The line with which students compare plans. Anybody may write one; marking says whether it is true."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["RaceLine", "find_lines"]

_LINE = re.compile(r"beat-the-link/2 seed=(\d{1,10}) score=([01]\.\d{4}) digest=([0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class RaceLine:
    """A claim: the cases drawn from ``seed`` were run at ``score`` (bound over time, geometric mean; 1 is the best),
    by the plans and command streams with ``digest``.
    """

    seed: int
    score: float
    digest: str

    def __str__(self) -> str:
        return f"beat-the-link/2 seed={self.seed} score={self.score:.4f} digest={self.digest}"


def find_lines(text: str) -> list[RaceLine]:
    """All lines in ``text``, whatever stands around them."""
    return [RaceLine(int(seed), float(score), digest) for seed, score, digest in _LINE.findall(text)]
