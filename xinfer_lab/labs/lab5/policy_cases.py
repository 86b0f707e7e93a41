"""Lab 5: draws uses of pages for a policy, and scans that come round again."""

from __future__ import annotations

from random import Random

from xinfer_lab.grading.piece import Case
from xinfer_lab.labs.lab5.policy import Use

__all__ = ["scans", "traces", "traces_with_pins"]

FIRST, LAST = 300, 2000
"""Pages are numbers from here to there: Python keeps no single object of any."""


def _trace(label: str, frames: int, uses: list[Use], *, others: bool = False) -> Case:
    beside = ", two policies in turn, after a third" if others else ""
    return Case(f"{label}{beside}", {"frames": frames, "uses": uses, "others": others})


def _free(*pages: int) -> list[Use]:
    return [["used", page, []] for page in pages]


def _pages(random: Random, count: int) -> list[int]:
    return random.sample(range(FIRST, LAST), count)


def _drawn(random: Random, pages: list[int], count: int) -> list[Use]:
    """Uses of which a few pages have most, and these change; some are only fetched, and some pages are taken out."""
    uses: list[int] = []
    while len(uses) < count:
        hot = random.sample(pages, 3)
        uses += [random.choice(hot) if random.random() < 0.6 else random.choice(pages) for _ in range(12)]
    kinds = random.choices(("used", "fetched", "taken out"), (80, 16, 4), k=count)
    return [[what, page, []] for what, page in zip(kinds, uses[:count], strict=True)]


def traces(random: Random) -> list[Case]:
    """Uses in which nothing is ever held: of a few frames, of one, of many, a scan, drawn ones; with pages that are
    fetched ahead of their use, and with pages that are taken out of the pool by others. One policy is not alone."""
    first = _pages(random, 10)
    again = [first[place] for place in (0, 1, 2, 3, 4, 1, 5, 1, 6, 7, 1, 8)]
    two_again = [first[place] for place in (0, 1, 2, 3, 4, 2, 1, 5, 6, 7, 3)]
    ahead: list[Use] = [*_free(*first[:4]), ["fetched", first[4], []], *_free(*first[1:4]), ["fetched", first[5], []]]
    ahead += _free(*first[6:9], first[4])
    taken_out: list[Use] = [*_free(*first[:4]), ["taken out", first[1], []], *_free(*first[4:6])]
    taken_out += [["taken out", first[4], []], ["taken out", first[0], []]]
    taken_out += _free(*first[6:9], first[6], first[1], first[9], first[2])
    many = _pages(random, 126)
    return [
        _trace("every page once", 3, _free(*first[:7])),
        _trace("one page is used again and again", 4, _free(*again)),
        _trace("two pages are used again", 4, _free(*two_again)),
        _trace("pages are fetched ahead", 4, ahead),
        _trace("one frame", 1, _free(*first[:4], first[3], first[0])),
        _trace("a scan that comes round", 4, _free(*first[:6] * 3)),
        _trace("pages are taken out of the pool", 4, taken_out),
        _trace("drawn uses", 5, _drawn(random, first, 60)),
        _trace("many frames", random.randint(40, 60), _drawn(random, many, 400)),
        _trace("drawn uses", random.randint(3, 8), _drawn(random, first, 60), others=True),
    ]


def traces_with_pins(random: Random) -> list[Case]:
    """Uses while other pages are held: one for a while, all of them for a moment, and drawn ones."""
    a, b, c, d, e, f, g = _pages(random, 7)

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
    pages = _pages(random, 10)
    for frames in (4, random.randint(3, 5), random.randint(4, 8)):
        cases.append(_held(random, "drawn uses, with pages that are held", frames, _drawn(random, pages, 60)))
    many = _drawn(random, _pages(random, 126), 400)
    return [
        *cases,
        _held(random, "many frames, with pages that are held", random.randint(40, 60), many),
        _held(random, "drawn uses, with pages that are held", 4, _drawn(random, pages, 60), others=True),
    ]


def _held(random: Random, label: str, frames: int, uses: list[Use], *, others: bool = False) -> Case:
    """``uses`` while some of those used before are held; now and then all that can be there, so that none may go."""
    for place, (_, page, held) in enumerate(uses):
        everything = random.random() < 0.1
        for back in range(1, place + 1 if everything else min(place, 3) + 1):
            if (everything or random.random() < 0.5) and uses[place - back][1] not in (page, *held):
                held.append(uses[place - back][1])
        held.sort()
    return _trace(label, frames, uses, others=others)


def scans(random: Random) -> list[Case]:
    """Scans of more pages than frames, of as many, of fewer; a single pass, a single frame, one frame too few; and of
    numbers beyond those that Python keeps one object of."""
    shapes = [(6, 4, 3), (28, 27, 4), (5, 5, 4), (4, 9, 3), (7, 1, 3), (1, 1, 5), (8, 3, 1), (6, 2, 10), (28, 14, 100)]
    for _ in range(4):
        pages = random.randint(5, 40)
        shapes.append((pages, random.randint(2, pages - 1), random.randint(2, 30)))
    pages = random.randint(5, 40)
    shapes.append((pages, pages - 1, random.randint(3, 30)))
    large = random.randint(300, 400)
    shapes += [(large, large, 4), (large, large + 1, 3), (large, large - 1, 5), (large, random.randint(260, 290), 4)]
    shapes.append((random.randint(3, 6), 3, random.randint(300, 400)))
    return [
        Case(
            f"{passes} passes over {pages} pages through {frames} frames",
            {"pages": pages, "frames": frames, "passes": passes},
        )
        for pages, frames, passes in shapes
    ]
