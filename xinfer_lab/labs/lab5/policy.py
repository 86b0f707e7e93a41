"""Lab 5: how a policy is played over uses of pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from xinfer_lab.grading.numbers import whole
from xinfer_lab.grading.piece import Observed
from xinfer_lab.grading.student_line import methods_of
from xinfer_lab.grading.values import Value
from xinfer_lab.labs.lab5.numbered import anew

__all__ = ["Use", "play_clock", "play_policy"]

Use = list[Value]
"""What happens to a page, the page, and the pages that may not go meanwhile. It is "used", which fetches it if it is
not there; "fetched" ahead of its use; or "taken out" of the pool."""


def play_clock(answer: Any, inputs: Mapping[str, Value], observed: Observed) -> object:
    """The victims of a policy of the answer's class, and the line of its method that chose them.

    ``others``: a policy was asked the same before, and another one is asked in between, which is some uses ahead.
    """
    line = methods_of(answer).get("choose")
    beside = _others(answer, inputs) if inputs["others"] else iter(())
    next(beside, None)
    victims: list[Value] = []
    for _ in _played(answer(), inputs, victims):
        next(beside, None)
    return {"victims": victims, "line": str(line) if line else None}


def play_policy(policy: Any, inputs: Mapping[str, Value]) -> list[Value]:
    """What ``policy`` chooses each time a page needs a frame and all ``frames`` are taken.

    It is told of everything as a pool tells it. Where it gives up no page, the page that needed one does not come; with
    a choice that may not go, or is not there, the list ends.
    """
    victims: list[Value] = []
    for _ in _played(policy, inputs, victims):
        pass
    return victims


AHEAD = 5
"""Uses that the other policy is ahead."""


def _others(answer: Any, inputs: Mapping[str, Value]) -> Iterator[None]:
    for ahead in (len(inputs["uses"]), AHEAD):
        steps = _played(answer(), inputs, [])
        for _ in islice(steps, ahead):
            pass
    yield from steps


def _played(policy: Any, inputs: Mapping[str, Value], victims: list[Value]) -> Iterator[None]:
    """Play the uses one at each step, and add to ``victims``."""
    there: set[int] = set()
    for what, number, held in inputs["uses"]:
        page = anew(number)
        if what == "taken out":
            if page in there:
                there.remove(page)
                policy.removed(page)
            yield
            continue
        if page not in there:
            if len(there) == inputs["frames"]:
                victim = policy.choose(lambda other, held=frozenset(held): other in there and other not in held)
                chosen = whole(victim)
                victims.append(victim if chosen is None else chosen)
                if victim is None:
                    yield
                    continue
                if chosen is None or chosen not in there or chosen in held:
                    return
                there.remove(chosen)
                policy.removed(victim)
            there.add(page)
            policy.placed(page)
        if what == "used":
            policy.used(page)
        yield
