"""Lab 5: draws the calls of a page table, in order and out of order."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value

__all__ = ["refused_calls", "table_calls"]

Call = list[Value]

MANY = 300
"""Pages and frames of a large table: numbers beyond those that Python keeps one object of."""


MOST = 12
"""Pages, and frames, that are looked at after each call."""


def _case(label: str, pages: int, frames: int, calls: list[Call], *, others: bool = False) -> Case:
    """``calls`` of a table; ``others``: it is not the only table. Looked at after each call are those pages and frames
    that the last calls speak of, and one besides."""
    named = {*list(dict.fromkeys(call[1] for call in reversed(calls)))[:MOST]}
    bound = {*list(dict.fromkeys(call[2] for call in reversed(calls) if call[0] == "bind"))[:MOST]}
    look = {
        "pages": [page for page in range(pages) if page in named or page == pages - 1],
        "frames": [frame for frame in range(frames) if frame in bound or frame == frames - 1],
    }
    beside = ", two tables in turn, after a third" if others else ""
    inputs = {"pages": pages, "frames": frames, "calls": calls, "look": look, "others": others}
    return Case(label + beside, inputs)


def _there(page: int, frame: int) -> list[Call]:
    return [["bind", page, frame], ["arrive", page]]


def table_calls(random: Random) -> list[Case]:
    """Calls that are all in order: a page's way there and back, frames that become free out of order, many users, a
    page that was fetched for nothing, written ones; large numbers; and long drawn sequences, in which pages are written
    too. One of the tables is not alone."""
    a, b, c = random.sample(range(5), 3)
    cases = [
        _case("one page, there and back", 5, 2, [*_there(a, 1), ["pin", a], ["unpin", a], ["unbind", a]]),
        _case(
            "frames become free out of order",
            5,
            3,
            [*_there(a, 0), *_there(b, 1), *_there(c, 2), ["unbind", c], ["unbind", a], ["bind", c, 0], ["unbind", b]],
        ),
        _case("several users of one page", 5, 2, _users(random, b)),
        _case(
            "fetched for nothing; then another page comes into its frame, and it into another",
            5,
            2,
            [["bind", c, 1], ["unbind", c], *_there(a, 1), *_there(c, 0), ["pin", c]],
        ),
        _case("written, copied home, and gone", 5, 2, [*_written(a, 0), ["mark_clean", a], ["unbind", a]]),
        _case(
            "written by one user, and then read by another",
            5,
            2,
            [
                *_there(b, 1),
                *[["pin", b], ["mark_dirty", b], ["pin", b], ["unpin", b], ["unpin", b], ["pin", b], ["unpin", b]],
                *[["mark_clean", b], ["unbind", b]],
            ],
        ),
        _case("large numbers", MANY, MANY, _large(random)),
        _case("every lower frame is taken", MANY, MANY, _taken(random)),
        _drawn(random, 6, 3),
        _drawn(random, random.randint(5, 9), random.randint(2, 4), others=True),
    ]
    random.shuffle(cases)
    return cases


def _written(page: int, frame: int) -> list[Call]:
    return [*_there(page, frame), ["pin", page], ["mark_dirty", page], ["unpin", page]]


def _users(random: Random, page: int) -> list[Call]:
    """Users of ``page`` who come and go, up to five at once."""
    calls, users = _there(page, 0), 0
    while len(calls) < 20 or users:
        more = users == 0 or (users < 5 and len(calls) < 20 and random.random() < 0.6)
        calls.append(["pin" if more else "unpin", page])
        users += 1 if more else -1
    return [*calls, ["unbind", page]]


def _taken(random: Random) -> list[Call]:
    """One frame after the other is taken, and some in between are free again."""
    pages = random.sample(range(MANY), MANY)
    calls: list[Call] = [["bind", page, frame] for frame, page in enumerate(pages[:280])]
    for frame in (270, 31, 260):
        calls.append(["unbind", pages[frame]])
    return [*calls, ["bind", pages[290], 31], ["bind", pages[291], 260], ["bind", pages[270], 270]]


def _large(random: Random) -> list[Call]:
    """Pages and frames with large numbers, while lower ones are free."""
    frames = random.sample(range(257, MANY), 8)
    pages = random.sample(range(257, MANY), len(frames))
    calls: list[Call] = [["bind", page, frame] for page, frame in zip(pages[:6], frames[:6], strict=True)]
    for page in pages[:6]:
        calls += [["arrive", page], ["pin", page]]
    calls += [["unpin", pages[2]], ["unbind", pages[2]], ["bind", pages[7], frames[2]], ["arrive", pages[7]]]
    return [*calls, ["unpin", pages[5]], ["unbind", pages[5]], ["bind", pages[2], frames[5]]]


def _drawn(random: Random, pages: int, frames: int, length: int = 40, *, others: bool = False) -> Case:
    """Pages that come, are used and go: one may be held while others come, or come without being used. Some are
    written, and copied home before they go."""
    free, there = list(range(frames)), dict[int, int]()
    moving, held, written = set[int](), set[int](), set[int]()
    calls: list[Call] = []
    while len(calls) < length:
        page = random.randrange(pages)
        if page not in there:
            if len(held) == frames:
                calls.append(["unpin", held.pop()])
            while not free or (there.keys() - held and random.random() < 0.3):
                gone = random.choice(sorted(there.keys() - held))
                if gone in written:
                    calls.append(["mark_clean", gone])
                    written.remove(gone)
                calls.append(["unbind", gone])
                free.append(there.pop(gone))
                moving.discard(gone)
            there[page] = free.pop(random.randrange(len(free)))
            calls.append(["bind", page, there[page]])
            moving.add(page)
        if random.random() < 0.3:
            continue  # it was only fetched
        if page in moving:
            calls.append(["arrive", page])
            moving.remove(page)
        calls += [["pin", page]]
        if random.random() < 0.3:
            calls.append(["mark_dirty", page])
            written.add(page)
        if page in held or random.random() < 0.6:
            calls.append(["unpin", page])
        else:
            held.add(page)
    return _case(f"{len(calls)} calls, all of them in order", pages, frames, calls, others=others)


NAMES = ("bind", "bind", "arrive", "arrive", "pin", "pin", "unpin", "unbind", "unbind", "mark_dirty", "mark_clean")
BESIDE = 3
"""Pages, and frames, that calls in order are about where others have to be refused."""


def refused_calls(random: Random) -> list[Case]:
    """Calls of which some must be refused, each rule in a case of its own, with calls afterwards that show whether a
    refusal changed anything; and drawn ones without any order.

    Between them lie calls that are in order, about other pages: which call is refused cannot be known by counting.
    """
    a, b, c = random.sample(range(4), 3)
    cases = [_among_others(random, label, calls) for label, calls in _out_of_order(a, b, c)]
    for others in (False, True):
        drawn: list[Call] = []
        while len(drawn) < 60:
            name, page = random.choice(NAMES), random.randrange(4)
            drawn.append([name, page, random.randrange(3)] if name == "bind" else [name, page])
        cases.append(_case("60 calls in no order", 4, 3, drawn, others=others))
    # Two tables in turn whose users are counted all along: in calls without order few ever have any.
    cases.append(_drawn(random, 6, 3, others=True))
    far = [[name, MANY - 1 - page, *(MANY - 1 - frame for frame in rest)] for name, page, *rest in drawn]
    cases.append(_case("60 calls in no order, large numbers", MANY, MANY, far))
    random.shuffle(cases)
    return cases


def _out_of_order(a: int, b: int, c: int) -> Iterator[tuple[str, list[Call]]]:
    yield (
        "a page that has a frame already",
        [
            *[["bind", a, 0], ["bind", a, 0], ["bind", a, 1], ["arrive", a], ["bind", a, 0], ["bind", a, 2]],
            *[["pin", a], ["bind", b, 1]],
        ],
    )
    yield (
        "a frame that has an owner already",
        [*_there(a, 1), ["bind", b, 1], ["pin", a], ["bind", b, 0], ["bind", c, 0], ["arrive", b]],
    )
    yield "a page that is not on its way", [["arrive", a], *_there(a, 0), ["arrive", a], ["arrive", b]]
    yield (
        "a page that is used before it is there",
        [["pin", a], ["bind", a, 0], ["pin", a], ["arrive", a], ["pin", a], ["unpin", a]],
    )
    yield (
        "a page that is released too often",
        [
            *[*_there(a, 0), ["unpin", a], ["pin", a], ["pin", a], ["unpin", a], ["unpin", a], ["unpin", a]],
            *[["pin", a], ["unpin", b]],
        ],
    )
    yield (
        "a page that goes while it is used",
        [
            *[*_there(b, 1), ["pin", b], ["pin", b], ["unbind", b], ["unpin", b], ["unbind", b], ["unpin", b]],
            ["unbind", b],
        ],
    )
    yield (
        "a page that goes without having a frame",
        [["unbind", a], ["bind", a, 1], ["unbind", a], ["unbind", a], ["bind", c, 1]],
    )
    yield (
        "a written page that was not copied home",
        [*_there(c, 0), ["pin", c], ["mark_dirty", c], ["unpin", c], ["unbind", c], ["mark_clean", c], ["unbind", c]],
    )
    # Whatever is refused, and how often: the page stays dirty until its copy home was submitted.
    yield (
        "a written page of which everything is asked that has to be refused",
        [
            *[*_there(b, 0), ["pin", b], ["mark_dirty", b], ["arrive", b], ["unbind", b], ["bind", b, 0]],
            *[["bind", b, 1], ["bind", a, 0], ["unpin", b], ["unpin", b], ["unbind", b], ["unbind", b]],
            *[["bind", b, 0], ["bind", b, 1], ["arrive", b], ["unbind", b], ["pin", b], ["unpin", b]],
            *[["mark_clean", b], ["unbind", b], ["pin", b], ["bind", a, 0]],
        ],
    )


def _among_others(random: Random, label: str, calls: list[Call]) -> Case:
    """``calls`` in their order, about pages 0 to 3 and frames 0 to 2, among calls in order about other ones."""
    beside = [call for call in _drawn(random, BESIDE, BESIDE, random.randrange(20)).inputs["calls"]]
    moved: list[Call] = [[name, 4 + page, *(3 + frame for frame in rest)] for name, page, *rest in beside]
    places = sorted(random.choices(range(len(calls) + 1), k=len(moved)))
    mixed: list[Call] = []
    for place in range(len(calls) + 1):
        mixed += [call for call, where in zip(moved, places, strict=True) if where == place]
        mixed += calls[place : place + 1]
    return _case(label, 4 + BESIDE, 3 + BESIDE, mixed)
