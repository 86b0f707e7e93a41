"""Lab 5: uses of pages, how a policy is played over them, and scans that come round again."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from xinfer_lab.grading.piece import Case, Observed
from xinfer_lab.grading.student_line import methods_of
from xinfer_lab.grading.values import Value

__all__ = ["play_clock", "play_policy", "scans", "traces", "traces_with_pins"]

Use = list[Value]
"""What happens to a page, the page, and the pages that may not go meanwhile. It is "used", which fetches it if it is
not there; "fetched" ahead of its use; or "taken out" of the pool."""


def play_clock(answer: Any, inputs: Mapping[str, Value], observed: Observed) -> object:
    """The victims of a policy of the answer's class, and the line of its method that chose them."""
    line = methods_of(answer).get("choose")
    return {"victims": play_policy(answer(), inputs), "line": str(line) if line else None}


def play_policy(policy: Any, inputs: Mapping[str, Value]) -> list[Value]:
    """What ``policy`` chooses each time a page needs a frame and all ``frames`` are taken.

    It is told of everything as a pool tells it. Where it gives up no page, the page that needed one does not come; with
    a choice that may not go, or is not there, the list ends.
    """
    there: set[int] = set()
    victims: list[Value] = []
    for what, page, held in inputs["uses"]:
        if what == "taken out":
            if page in there:
                there.remove(page)
                policy.removed(page)
            continue
        if page not in there:
            if len(there) == inputs["frames"]:
                victim = policy.choose(lambda other, held=frozenset(held): other in there and other not in held)
                victims.append(victim)
                if victim is None:
                    continue
                if type(victim) is not int or victim not in there or victim in held:
                    break
                there.remove(victim)
                policy.removed(victim)
            there.add(page)
            policy.placed(page)
        if what == "used":
            policy.used(page)
    return victims


def _trace(label: str, frames: int, uses: list[Use]) -> Case:
    return Case(label, {"frames": frames, "uses": uses})


def _free(*pages: int) -> list[Use]:
    return [["used", page, []] for page in pages]


def _drawn(random: Random, pages: int, count: int) -> list[Use]:
    """Uses of which a few pages have most, and these change; some are only fetched."""
    uses: list[int] = []
    while len(uses) < count:
        hot = random.sample(range(pages), 3)
        uses += [random.choice(hot) if random.random() < 0.6 else random.randrange(pages) for _ in range(12)]
    return [["used" if random.random() < 0.8 else "fetched", page, []] for page in uses[:count]]


def traces(random: Random) -> list[Case]:
    """Uses in which nothing is ever held: of a few frames, of one, a scan, drawn ones; with pages that are fetched
    ahead of their use, and with pages that are taken out of the pool by others."""
    first = random.sample(range(10), 10)
    again = [first[place] for place in (0, 1, 2, 3, 4, 1, 5, 1, 6, 7, 1, 8)]
    two_again = [first[place] for place in (0, 1, 2, 3, 4, 2, 1, 5, 6, 7, 3)]
    ahead: list[Use] = [*_free(*first[:4]), ["fetched", first[4], []], *_free(*first[1:4]), ["fetched", first[5], []]]
    ahead += _free(*first[6:9], first[4])
    taken_out: list[Use] = [*_free(*first[:4]), ["taken out", first[1], []], *_free(*first[4:6])]
    taken_out += [["taken out", first[4], []], ["taken out", first[0], []]]
    taken_out += _free(*first[6:9], first[6], first[1], first[9], first[2])
    return [
        _trace("every page once", 3, _free(*first[:7])),
        _trace("one page is used again and again", 4, _free(*again)),
        _trace("two pages are used again", 4, _free(*two_again)),
        _trace("pages are fetched ahead", 4, ahead),
        _trace("one frame", 1, _free(*first[:4], first[3], first[0])),
        _trace("a scan that comes round", 4, _free(*list(range(6)) * 3)),
        _trace("pages are taken out of the pool", 4, taken_out),
        _trace("drawn uses", 5, _drawn(random, 9, 60)),
        _trace("drawn uses", random.randint(3, 6), _drawn(random, 10, 60)),
    ]


def traces_with_pins(random: Random) -> list[Case]:
    """Uses while other pages are held: one for a while, all of them for a moment, and drawn ones."""
    a, b, c, d, e, f, g = random.sample(range(10), 7)

    def use(page: int, *held: int) -> Use:
        return ["used", page, list(held)]

    one_held = [*_free(a, b, c), use(d, a), use(e, a), use(b, a), use(f, a), use(g), use(c)]
    all_held = [*_free(a, b, c), use(d, a, b, c), use(e), use(f, c, e), use(g, a, b, c, e, f), use(d)]
    keeps = [*_free(a, b, c, d), use(e, a), use(c), use(b), use(f, b), use(g, e), use(a), use(d)]
    cases = [
        _trace("one page is held for a while", 3, one_held),
        _trace("all pages are held", 3, all_held),
        _trace("held pages have marks", 4, keeps),
    ]
    for frames in (4, random.randint(3, 5), random.randint(4, 6)):
        uses = _drawn(random, 10, 60)
        for place, (_, page, held) in enumerate(uses):
            for back in (1, 2, 3):
                if back <= place and random.random() < 0.5 and uses[place - back][1] not in (page, *held):
                    held.append(uses[place - back][1])
            held.sort()
        cases.append(_trace("drawn uses, with pages that are held", frames, uses))
    return cases


def scans(random: Random) -> list[Case]:
    """Scans of more pages than frames, of as many, of fewer; a single pass, a single frame, one frame too few."""
    shapes = [(6, 4, 3), (28, 27, 4), (5, 5, 4), (4, 9, 3), (7, 1, 3), (1, 1, 5), (8, 3, 1), (6, 2, 10), (28, 14, 100)]
    for _ in range(4):
        pages = random.randint(5, 40)
        shapes.append((pages, random.randint(2, pages - 1), random.randint(2, 30)))
    pages = random.randint(5, 40)
    shapes.append((pages, pages - 1, random.randint(3, 30)))
    return [
        Case(
            f"{passes} passes over {pages} pages through {frames} frames",
            {"pages": pages, "frames": frames, "passes": passes},
        )
        for pages, frames, passes in shapes
    ]
