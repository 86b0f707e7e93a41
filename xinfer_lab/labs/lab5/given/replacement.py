"""What a policy makes of a sequence of uses: hits and misses, without a device. A cyclic scan is where LRU fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xinfer_lab.paging.policy import POLICIES, EvictionPolicy, open_policy

__all__ = ["Replacement", "compare_policies", "count_hits", "cyclic_bound", "cyclic_scan"]


@dataclass(frozen=True, slots=True)
class Replacement:
    """Of ``uses`` uses ``hits`` found their page in one of ``frames`` frames."""

    policy: str
    frames: int
    uses: int
    hits: int

    @property
    def misses(self) -> int:
        """Pages that had to be fetched."""
        return self.uses - self.hits

    @property
    def hit_rate(self) -> float:
        """The share of uses that found their page there."""
        return self.hits / self.uses if self.uses else 0.0


def cyclic_scan(pages: int, rounds: int) -> list[int]:
    """The uses of a model's layers, or of its KV pages, in ``rounds`` forward passes: 0, 1, ..., again and again."""
    return list(range(pages)) * rounds


def count_hits(policy: EvictionPolicy, uses: Iterable[int], frames: int) -> int:
    """How many of ``uses`` find their page in one of ``frames`` frames, each page fetched when it is needed.

    ``policy`` has seen nothing yet.
    """
    if frames < 1:
        raise ValueError(f"at least one frame is needed, not {frames}")
    there: set[int] = set()
    hits = 0
    for page in uses:
        if page in there:
            hits += 1
        else:
            if len(there) == frames:
                victim = policy.choose(there.__contains__)
                if victim is None:
                    raise ValueError(f"the policy has no victim among {sorted(there)}, all of which may go")
                there.remove(victim)
                policy.removed(victim)
            there.add(page)
            policy.placed(page)
        policy.used(page)
    return hits


def compare_policies(uses: Sequence[int], frames: int, policies: Sequence[str] = POLICIES) -> tuple[Replacement, ...]:
    """What each of ``policies`` makes of the same ``uses``."""
    return tuple(
        Replacement(name, frames, len(uses), count_hits(open_policy(name, uses), uses, frames)) for name in policies
    )


def cyclic_bound(pages: int, frames: int) -> float:
    """The most hits a round that any policy reaches in the long run on a cyclic scan of ``pages`` pages, at least two,
    through fewer ``frames``: pages * (frames - 1) / (pages - 1).

    Belady's rule, which nobody betters, evicts the page that was used just now. So ``frames - 1`` pages stay for a
    while, and of ``pages - 1`` uses in a row as many are hits.
    """
    if not 1 <= frames < pages:
        raise ValueError(f"the bound is for 1 to {pages - 1} frames, not {frames}: with more, every use is a hit")
    return pages * (frames - 1) / (pages - 1)
