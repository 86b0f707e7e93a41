"""Lab 6: draws needs that a plan is asked for and that no model is run for.

Each of a plan's decisions matters in some of them, whatever the seed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value
from xinfer_lab.labs.lab6.judge.bounds import Best, plans_of, time_of

__all__ = ["EACH", "asked_needs"]

EACH = 3
"""Needs of each kind."""
SHARE = 0.6
"""A plan that decides otherwise in one matter comes to no more than this of the best one's bound."""
NEAR = 0.45
"""A plan that forgets the host's copying comes to this at least."""
_TRIES = 20_000


def asked_needs(random: Random) -> list[Case]:
    """Needs for which each form and each tier is the best by far, with layers that stream and where all stay."""
    found: dict[tuple[str, str, bool], list[Case]] = {kind: [] for kind in KINDS}
    for _ in range(_TRIES):
        needs = _needs(random)
        kind = _kind(needs)
        if kind in found and len(found[kind]) < EACH:
            words = f"{needs['layers']} layers, {' or '.join(needs['forms'])}, no model is run"
            found[kind].append(Case(words, {"needs": needs}))
        if all(len(cases) == EACH for cases in found.values()):
            break
    cases = [case for of_a_kind in found.values() for case in of_a_kind]
    cases += [_in_turns(random) for _ in range(EACH)]
    random.shuffle(cases)
    return cases


def _in_turns(random: Random) -> Case:
    """Needs in which only staging fits, and computing, the link and the host's copying take about as long: whoever has
    one slot, so that they go in turns, takes nearly three times the bound."""

    def about(value: float) -> float:
        return value * random.uniform(0.98, 1.02)

    layers, layer = random.randint(30, 126), random.randint(10**6, 10**9)
    link, always, ring = random.uniform(1e9, 6e10), round(layer * random.uniform(0.2, 6)), random.randint(2, 4)
    stay = random.randint(3, layers - 20)
    needs: dict[str, Value] = {
        "layers": layers,
        "budget": always + (stay + 2) * layer + random.randrange(layer),
        "pinned": (ring + 1) * layer,
        "ring": ring,
        "link": link,
        "memcpy": about(link),
        "t_pass": about((layers - stay) * layer / link),
        "forms": {"plain": {"layer_bytes": layer, "always": always, "t_decode": 0.0}},
    }
    return Case(f"{layers} layers, plain, no model is run", {"needs": needs})


KINDS = (
    ("plain", "pinned", True),
    ("plain", "staged", True),
    ("coded", "pinned", True),
    ("coded", "staged", True),
    ("plain", "any", False),
    ("coded", "any", False),
    ("plain, and no other", "pinned", True),
    ("plain, and no other", "staged", True),
    ("copied for too long", "any", True),
    ("decoded where it stays", "any", True),
    ("better by little", "any", True),
)
"""Form, tier, whether layers stream: of the best plan, where every other decision is far worse or does not fit."""


def _kind(needs: dict[str, Any]) -> tuple[str, str, bool] | None:
    plans = plans_of(json.loads(json.dumps(needs)))
    if not plans:
        return None
    best = min(plans, key=lambda plan: plan.bound)
    # Not so far that the lowest of the checks would find it: whatever is drawn, the same ones do.
    if _misled(best, plans, _without_copying(needs), NEAR):
        return "copied for too long", "any", True
    if best.streamed and _misled(best, plans, _decoded_as_it_streams(needs), NEAR):
        return "decoded where it stays", "any", True
    others = [plan for plan in plans if plan.form != best.form]
    if best.streamed and others and 0.8 <= best.bound / min(plan.bound for plan in others) <= 0.87:
        return "better by little", "any", True
    form = best.form if len(needs["forms"]) > 1 else "plain, and no other"
    if not best.streamed:
        others = [plan for plan in plans if plan.form != best.form]
        return (form, "any", False) if others and _far(best, others) else None
    others = [plan for plan in plans if (plan.form, plan.host) != (best.form, best.host)]
    if best.host == "staged" and any(plan.host == "pinned" for plan in plans):
        return None  # a pinned copy that fits is never slower
    wanted = best.host == "staged" or any(plan.host == "staged" for plan in plans)
    return (form, best.host, True) if wanted and _far(best, others) else None


def _misled(best: Best, plans: tuple[Best, ...], figured: Callable[[Best], float], near: float = 0.0) -> bool:
    """Whether who takes a plan's time for ``figured`` chooses another form, which takes far longer."""
    chosen = min(plans, key=figured)
    return chosen.form != best.form and near * chosen.bound <= best.bound <= SHARE * chosen.bound


def _without_copying(needs: dict[str, Any]) -> Callable[[Best], float]:
    """A plan's time, were the host's copying for nothing."""

    def time(plan: Best) -> float:
        times = time_of(needs, plan.form, plan.host, plan.streamed)
        return max(times["computing"], times["link"])

    return time


def _decoded_as_it_streams(needs: dict[str, Any]) -> Callable[[Best], float]:
    """A plan's time, were only those layers decoded that stream."""

    def time(plan: Best) -> float:
        times = time_of(needs, plan.form, plan.host, plan.streamed)
        times["computing"] -= (needs["layers"] - plan.streamed) * needs["forms"][plan.form]["t_decode"]
        return max(times.values())

    return time


def _far(best: Best, others: list[Best]) -> bool:
    return all(best.bound <= SHARE * other.bound for other in others)


def _needs(random: Random) -> dict[str, Value]:
    """Needs of a model that does not exist: few layers or many, small ones or large ones, on any machine."""
    layers = random.choice((random.randint(3, 12), random.randint(13, 60), random.randint(61, 126)))
    layer = round(10 ** random.uniform(5, 9.5))
    link = random.uniform(1e9, 6e10)
    transfer = layer / link
    always, ring = round(layer * random.uniform(0.2, 6)), random.randint(2, 4)
    forms: dict[str, dict[str, Value]] = {"plain": {"layer_bytes": layer, "always": always, "t_decode": 0.0}}
    if random.random() < 0.7:
        forms["coded"] = {
            "layer_bytes": round(layer * random.uniform(0.6, 0.8)),
            "always": always + round(layer * random.uniform(1.0, 1.2)),
            "t_decode": transfer * 10 ** random.uniform(-2.5, 0.3),
        }
    room = random.choice((random.uniform(2, 4), random.uniform(3, layers), layers * random.uniform(0.6, 1.1)))
    pinned = random.choice((random.uniform(0.6, 4), random.uniform(2, layers), 2 * layers))
    return {
        "layers": layers,
        "budget": always + round(room * layer),
        "pinned": round(pinned * layer),
        "ring": ring,
        "link": link,
        "memcpy": link * random.choice((random.uniform(0.2, 0.6), random.uniform(0.8, 3))),
        "t_pass": layers * transfer * 10 ** random.uniform(-2, 0.5),
        "forms": forms,
    }
