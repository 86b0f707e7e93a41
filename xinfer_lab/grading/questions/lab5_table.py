"""Lab 5: calls of a page table, in order and out of order, and how a table is played."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from xinfer_lab.grading.denial import DeniedModule
from xinfer_lab.grading.guard import AnswerTimeout
from xinfer_lab.grading.piece import Case, Observed
from xinfer_lab.grading.student_line import Line, methods_of, raised_at
from xinfer_lab.grading.values import Value
from xinfer_lab.paging.errors import PageError

__all__ = ["play_table", "refused_calls", "table_calls"]

Call = list[Value]


def play_table(answer: Any, inputs: Mapping[str, Value], observed: Observed) -> object:
    """For each call in order: what came of it, what the table says of every page and frame afterwards, and the line of
    the methods that were called. Ends where the table cannot say it."""
    pages, frames = inputs["pages"], inputs["frames"]
    table, lines = answer(pages, frames), methods_of(answer)
    steps: list[dict[str, object]] = []
    for name, *arguments in inputs["calls"]:
        line, look = lines.get(name), dict[str, str]()
        try:
            returned = getattr(table, name)(*arguments)
            did = f"returned {returned!r}"[:80] if name == "unbind" else "done"
        except PageError:
            did = "PageError"
        except Exception as error:
            did, line = _broke(error), raised_at(error.__traceback__, answer) or line
        try:
            look = _look(table, pages, frames)
        except Exception as error:
            did, line = _broke(error), raised_at(error.__traceback__, answer) or line
        own = {"line": _shown(line), "free_line": _shown(lines.get("free_frame"))}
        steps.append({"did": did, "look": look, **own})
        if not look:
            break
    return steps


def _shown(line: Line | None) -> str | None:
    return str(line) if line else None


def _broke(error: Exception) -> str:
    if isinstance(error, AnswerTimeout | DeniedModule | NotImplementedError):
        raise error
    return f"{type(error).__name__}: {error}"[:200]


def _look(table: Any, pages: int, frames: int) -> dict[str, str]:
    look = {f"page {page}": _page(table, page) for page in range(pages)}
    look |= {f"frame {frame}": f"page_in {table.page_in(frame)!r}"[:80] for frame in range(frames)}
    return look | {"free_frame()": f"{table.free_frame()!r}"[:80]}


def _page(table: Any, page: int) -> str:
    held = f"{table.state(page)}, frame {table.frame_of(page)!r}, pins {table.pins(page)!r}"
    return f"{held}, dirty {table.is_dirty(page)!r}"[:120]


def _case(label: str, pages: int, frames: int, *calls: Call) -> Case:
    return Case(label, {"pages": pages, "frames": frames, "calls": list(calls)})


def _there(page: int, frame: int) -> tuple[Call, Call]:
    return ["bind", page, frame], ["arrive", page]


def table_calls(random: Random) -> list[Case]:
    """Calls that are all in order: a page's way there and back, frames that become free out of order, two users, a page
    that was fetched for nothing, written ones; and long drawn sequences, in which pages are written too."""
    a, b, c = random.sample(range(5), 3)
    return [
        _case("one page, there and back", 5, 2, *_there(a, 1), ["pin", a], ["unpin", a], ["unbind", a]),
        _case(
            "frames become free out of order",
            5,
            3,
            *([*_there(a, 0), *_there(b, 1), *_there(c, 2)]),
            *([["unbind", c], ["unbind", a], ["bind", c, 0], ["unbind", b]]),
        ),
        _case(
            "two users of one page",
            5,
            2,
            *_there(b, 0),
            *([["pin", b], ["pin", b], ["unpin", b], ["pin", b], ["unpin", b], ["unpin", b], ["unbind", b]]),
        ),
        _case(
            "fetched for nothing; then another page comes into its frame, and it into another",
            5,
            2,
            *([["bind", c, 1], ["unbind", c], *_there(a, 1), *_there(c, 0), ["pin", c]]),
        ),
        _case(
            "written, copied home, and gone",
            5,
            2,
            *_there(a, 0),
            *([["pin", a], ["mark_dirty", a], ["unpin", a], ["mark_clean", a], ["unbind", a], ["bind", b, 0]]),
        ),
        _case(
            "written by one user, and then read by another",
            5,
            2,
            *_there(b, 1),
            *([["pin", b], ["mark_dirty", b], ["pin", b], ["unpin", b], ["unpin", b], ["pin", b], ["unpin", b]]),
            *([["mark_clean", b], ["unbind", b]]),
        ),
        _drawn(random, 6, 3),
        _drawn(random, random.randint(5, 9), random.randint(2, 4)),
    ]


def _drawn(random: Random, pages: int, frames: int, length: int = 40) -> Case:
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
    return _case(f"{len(calls)} calls, all of them in order", pages, frames, *calls)


NAMES = ("bind", "bind", "arrive", "arrive", "pin", "pin", "unpin", "unbind", "unbind", "mark_dirty", "mark_clean")


def refused_calls(random: Random) -> list[Case]:
    """Calls of which some must be refused, each rule in a case of its own, with calls afterwards that show whether a
    refusal changed anything; and drawn ones without any order."""
    a, b, c = random.sample(range(4), 3)
    drawn: list[Call] = []
    while len(drawn) < 60:
        name, page = random.choice(NAMES), random.randrange(4)
        drawn.append([name, page, random.randrange(3)] if name == "bind" else [name, page])
    return [
        _case(
            "a page that has a frame already",
            4,
            3,
            *([["bind", a, 0], ["bind", a, 0], ["bind", a, 1], ["arrive", a], ["bind", a, 0], ["bind", a, 2]]),
            *([["pin", a], ["bind", b, 1]]),
        ),
        _case(
            "a frame that has an owner already",
            4,
            2,
            *([*_there(a, 1), ["bind", b, 1], ["pin", a], ["bind", b, 0], ["bind", c, 0], ["arrive", b]]),
        ),
        _case("a page that is not on its way", 4, 2, *([["arrive", a], *_there(a, 0), ["arrive", a], ["arrive", b]])),
        _case(
            "a page that is used before it is there",
            4,
            2,
            *([["pin", a], ["bind", a, 0], ["pin", a], ["arrive", a], ["pin", a], ["unpin", a]]),
        ),
        _case(
            "a page that is released too often",
            4,
            2,
            *([*_there(a, 0), ["unpin", a], ["pin", a], ["pin", a], ["unpin", a], ["unpin", a], ["unpin", a]]),
            *([["pin", a], ["unpin", b]]),
        ),
        _case(
            "a page that goes while it is used",
            4,
            2,
            *([*_there(b, 1), ["pin", b], ["pin", b], ["unbind", b], ["unpin", b], ["unbind", b], ["unpin", b]]),
            ["unbind", b],
        ),
        _case(
            "a page that goes without having a frame",
            4,
            2,
            *([["unbind", a], ["bind", a, 1], ["unbind", a], ["unbind", a], ["bind", c, 1]]),
        ),
        _case(
            "a written page that was not copied home",
            4,
            2,
            *([*_there(c, 0), ["pin", c], ["mark_dirty", c], ["unpin", c], ["unbind", c], ["mark_clean", c]]),
            ["unbind", c],
        ),
        # Whatever is refused, and how often: the page stays dirty until its copy home was submitted.
        _case(
            "a written page of which everything is asked that has to be refused",
            4,
            2,
            *([*_there(b, 0), ["pin", b], ["mark_dirty", b], ["arrive", b], ["unbind", b], ["bind", b, 0]]),
            *([["bind", b, 1], ["bind", a, 0], ["unpin", b], ["unpin", b], ["unbind", b], ["unbind", b]]),
            *([["bind", b, 0], ["bind", b, 1], ["arrive", b], ["unbind", b], ["pin", b], ["unpin", b]]),
            *([["mark_clean", b], ["unbind", b], ["pin", b], ["bind", a, 0]]),
        ),
        _case("60 calls in no order", 4, 3, *drawn),
    ]
