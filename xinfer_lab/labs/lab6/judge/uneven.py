"""Lab 6: races on paper for the leaderboard: layers of different sizes, a cache that grows, a link that is unsteady.

No executor runs them, since a decoder's layers are alike: the judge times a plan by a ring of slots on one link. The
bound is not always within reach, so that there is no plan after which nothing is left to try.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any
from zlib import crc32

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value

__all__ = ["bytes_held", "paper_bound", "paper_time", "uneven_needs"]

Needs = Mapping[str, Any]
PASSES = 12


def uneven_needs(random: Random) -> list[Case]:
    """Four cases: each of the three troubles alone, and all of them together."""
    kinds = {
        "uneven layers": (True, False, False),
        "a cache that grows": (False, True, False),
        "an unsteady link": (False, False, True),
        "uneven layers, a cache that grows, an unsteady link": (True, True, True),
    }
    return [Case(f"on paper: {words}", {"needs": _needs(random, words, *kind)}) for words, kind in kinds.items()]


def _needs(random: Random, trouble: str, sizes: bool, grows: bool, unsteady: bool) -> dict[str, Value]:
    layers, base, link = random.randint(24, 60), random.randint(10**7, 10**8), random.randint(10, 60) * 10**9
    each = [round(base * (random.choice((0.4, 0.7, 1.0, 1.9)) if sizes else 1.0)) for _ in range(layers)]
    # Computing takes about as long as what has to stream: then each pause of the link is felt.
    room = random.uniform(0.45, 0.6)
    computing = sum(each) * (1 - room) / link * random.uniform(0.8, 1.0)
    always = round(base * random.uniform(1, 3))
    budget = always + round(sum(each) * room)
    # As large as the slots that are there, at most: any plan that leaves no room pays for it.
    growth = round(2 * base / PASSES * random.uniform(0.6, 1.0)) if grows else 0
    uneven: dict[str, Value] = {
        "trouble": trouble,
        "layer_bytes": tuple(each),
        "t_layer": tuple(computing * size / sum(each) for size in each),
        "grows": growth,
        "passes": PASSES,
        "jitter": round(random.uniform(0.5, 0.9), 2) if unsteady else 0.0,
    }
    return {
        "layers": layers,
        "budget": budget,
        "pinned": 2 * sum(each),
        "ring": 2,
        "link": link,
        "memcpy": link // 2,
        "t_pass": computing,
        "forms": {"plain": {"layer_bytes": max(each), "always": always, "t_decode": 0.0}},
        "uneven": uneven,
    }


def bytes_held(needs: Needs, places: Sequence[int], slots: int) -> int:
    """Device memory of a plan at the beginning; a slot has room for the largest layer that streams."""
    each = needs["uneven"]["layer_bytes"]
    stay = sum(each) - sum(each[place] for place in places)
    held: int = needs["forms"]["plain"]["always"] + stay + slots * max((each[place] for place in places), default=0)
    return held


def paper_time(needs: Needs, places: Sequence[int], slots: int, host: str) -> float:
    """Seconds of a pass, the mean of all. What the grown cache displaces goes to the host and back in each pass."""
    own, streams = needs["uneven"], set(places)
    each, times, held = own["layer_bytes"], own["t_layer"], bytes_held(needs, places, slots)
    rate = needs["link"] if host == "pinned" else min(needs["link"], needs["memcpy"])
    # The same for every plan: what the link does at a moment is no matter of the plan.
    random = Random(crc32(json.dumps(needs, sort_keys=True).encode()))
    link = now = 0.0
    read: list[float] = []
    for number in range(own["passes"]):
        link += 2 * max(0, held + number * own["grows"] - needs["budget"]) / rate
        for layer, seconds in enumerate(times):
            if layer in streams:
                free = read[-slots] if len(read) >= slots else 0.0
                link = max(link, free) + each[layer] / rate * (1 + own["jitter"] * random.uniform(-1, 1))
                now = max(now, link)
            now += seconds
            if layer in streams:
                read.append(now)
    seconds_a_pass: float = now / own["passes"]
    return seconds_a_pass


def paper_bound(needs: Needs) -> float:
    """Seconds that no plan goes below: all computing, or the bytes that do not fit beside the smallest slot."""
    own, always = needs["uneven"], needs["forms"]["plain"]["always"]
    lacking = sum(own["layer_bytes"]) + min(own["layer_bytes"]) + always - needs["budget"]
    moved = sum(max(0, lacking + number * own["grows"]) for number in range(own["passes"]))
    return float(max(sum(own["t_layer"]), moved / own["passes"] / needs["link"]))
