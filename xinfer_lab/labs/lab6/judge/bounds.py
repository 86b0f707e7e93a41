"""Lab 6: what each form and each tier allows for a planner's needs, and the best of all plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xinfer_lab.grading.values import Value

__all__ = ["Best", "bytes_used", "fewest_streamed", "pinned_used", "plans_of", "time_of"]

Needs = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Best:
    """The least time that a plan for a case allows: its ``bound`` in seconds, what ``binds`` it, and how it is had."""

    bound: float
    binds: str
    form: str
    host: str
    streamed: int


def bytes_used(needs: Needs, form: str, streamed: int, slots: int) -> int:
    """Bytes of device memory of a plan."""
    figures = needs["forms"][form]
    used: int = figures["always"] + (needs["layers"] - streamed + slots) * figures["layer_bytes"]
    return used


def pinned_used(needs: Needs, form: str, host: str, streamed: int) -> int:
    """Bytes of pinned memory of a plan."""
    held = min(streamed, needs["ring"]) if host == "staged" else streamed
    used: int = held * needs["forms"][form]["layer_bytes"]
    return used


def time_of(needs: Needs, form: str, host: str, streamed: int) -> dict[str, float]:
    """How long computing, the link and the host's copying take in a pass."""
    figures = needs["forms"][form]
    moved = streamed * figures["layer_bytes"]
    times = {"computing": needs["t_pass"] + needs["layers"] * figures["t_decode"], "link": moved / needs["link"]}
    if host == "staged":
        times["memcpy"] = moved / needs["memcpy"]
    return times


def plans_of(needs: Needs) -> tuple[Best, ...]:
    """What each form allows in each host tier, with as few streamed layers as the budget leaves."""
    found = []
    for form in needs["forms"]:
        counts = (
            count
            for count in (0, *range(3, needs["layers"] + 1))
            if bytes_used(needs, form, count, 2 * bool(count)) <= needs["budget"]
        )
        # Fewer streamed layers are never slower.
        if (streamed := next(counts, None)) is None:
            continue
        for host in ("pinned", "staged"):
            if pinned_used(needs, form, host, streamed) > needs["pinned"]:
                continue
            times = time_of(needs, form, host, streamed)
            binds = max(times, key=lambda name: times[name])
            found.append(Best(times[binds], binds, form, host, streamed))
    return tuple(found)


def fewest_streamed(needs: Needs, form: str) -> Any:
    """How many layers have to stream in ``form`` at least; all of them where it does not fit."""
    return min((plan.streamed for plan in plans_of(needs) if plan.form == form), default=needs["layers"])
